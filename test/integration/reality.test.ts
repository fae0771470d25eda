/** Our REALITY client against servers that are put together here from the engine's parts. */
import assert from "node:assert/strict";
import { createDecipheriv, createPublicKey, diffieHellman, generateKeyPairSync, hkdfSync } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { AuthError, ConfigError, DialError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import type { TlsOpened, TlsProvider } from "#core/tls.ts";
import { openTrust } from "#net/dial/trust.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { decodeClientHello, readKeyShares } from "#transport/tls13/hello-messages.ts";
import { GROUP } from "#transport/tls13/key-exchange.ts";
import { RECORD } from "#transport/tls13/records.ts";
import { makeCertificate, type TestCertificate } from "../support/certificate.ts";
import { textFiles } from "../support/text-files.ts";
import { portableTls, tlsProvider } from "../support/tls.ts";
import { answerHello, realityCertificate, sealFlight } from "../support/tls13-server.ts";

const authority = makeCertificate({ names: ["Test Authority"] });
const site = makeCertificate({ names: ["site.test"], issuer: authority });
const trust = await openTrust([authority.cert], textFiles, "tls.custom-certifactes");
const serverKey = generateKeyPairSync("x25519");
const X25519_SPKI = Buffer.from("302a300506032b656e032100", "hex");
const publicKey = serverKey.publicKey
  .export({ type: "spki", format: "der" })
  .subarray(-32)
  .toString("base64url");

interface Opened {
  readonly authKey: Buffer;
  /** Empty: the token does not open. */
  readonly token: Buffer;
}

function openToken(message: Buffer): Opened {
  const { random, sessionId, extensions } = decodeClientHello(message.subarray(4));
  const share = readKeyShares(extensions.get(51) ?? Buffer.alloc(0)).get(GROUP.x25519) ?? Buffer.alloc(0);
  const peer = createPublicKey({ key: Buffer.concat([X25519_SPKI, share]), type: "spki", format: "der" });
  const shared = diffieHellman({ privateKey: serverKey.privateKey, publicKey: peer });
  const authKey = Buffer.from(hkdfSync("sha256", shared, random.subarray(0, 20), "REALITY", 32));
  const cipher = createDecipheriv("aes-256-gcm", authKey, random.subarray(20));
  cipher.setAAD(Buffer.from(message).fill(0, 39, 71)).setAuthTag(sessionId.subarray(16));
  const token = cipher.update(sessionId.subarray(0, 16));
  try {
    cipher.final();
    return { authKey, token };
  } catch {
    return { authKey, token: Buffer.alloc(0) };
  }
}

/** Answers each hello with the certificate that `choose` gives, then says `welcome`. */
async function serve(choose: (opened: Opened) => TestCertificate) {
  const sockets = new Set<Socket>();
  const arrived: Buffer[] = [];
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    let said = Buffer.alloc(0);
    let isAnswered = false;
    socket.on("data", (bytes: Buffer) => {
      if (isAnswered) return void arrived.push(bytes);
      said = Buffer.concat([said, bytes]);
      if (said.length < 5 || said.length < 5 + said.readUInt16BE(3)) return;
      isAnswered = true;
      const message = said.subarray(5);
      const flight = answerHello(message, choose(openToken(message)));
      socket.write(sealFlight(flight));
      socket.write(flight.application.seal(RECORD.applicationData, Buffer.from("welcome")));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    arrived,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function dial(
  port: number,
  provider: TlsProvider = tlsProvider,
  more: object = {},
): Promise<TlsOpened> {
  const keys = { "public-key": publicKey, "short-id": "0123", "support-x25519mlkem768": true };
  const fields = { "skip-cert-verify": false, "reality-opts": keys, ...more };
  const place = { node: "n", server: "127.0.0.1", serverName: "site.test", files: textFiles, trust };
  const client = provider.makeClient(await readTlsClient(fields, place), SILENT);
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  return await client.open(socket, { signal: AbortSignal.timeout(15_000) });
}

for (const [name, provider] of [
  ["library", tlsProvider],
  ["node:crypto", portableTls],
] as const)
  test(`a server that knows the key is believed, ${name}`, async () => {
    const tokens: Buffer[] = [];
    await using server = await serve(({ authKey, token }) => {
      tokens.push(token);
      return realityCertificate(authKey);
    });
    for (const browser of ["", "chrome", "firefox", "safari", "ios", "randomized"]) {
      const { stream } = await dial(server.port, provider, { "client-fingerprint": browser });
      assert.equal(String((await once(stream, "data"))[0]), "welcome");
      stream.destroy();
      const token = tokens.pop() ?? assert.fail();
      assert.deepEqual([...token.subarray(0, 4)], [26, 7, 28, 0]);
      assert.ok(Math.abs(token.readUInt32BE(4) - Date.now() / 1000) < 60);
      assert.equal(token.subarray(8).toString("hex"), "0123000000000000");
    }
  });

test("the real site sees a browser, and nothing else", async () => {
  await using server = await serve(() => site);
  await assert.rejects(dial(server.port), (error) => {
    assert.ok(error instanceof DialError && error.cause instanceof AuthError);
    assert.match(error.message, /real site's certificate.*public-key, short-id/);
    return true;
  });
  assert.ok(server.arrived.length > 0, "the handshake was finished, and a page asked for");
});

test("neither the server nor the site: refused at once", async () => {
  const other = makeCertificate({ names: ["site.test"] });
  for (const shown of [other, realityCertificate(Buffer.alloc(32))]) {
    await using server = await serve(() => shown);
    await assert.rejects(
      dial(server.port),
      (error) => error instanceof DialError && /neither its own certificate nor/.test(error.message),
    );
  }
});

test("a server without the ML-DSA-65 signature that is asked for is refused", async () => {
  const key = generateKeyPairSync("ml-dsa-65").publicKey.export({ type: "spki", format: "der" });
  const keys = {
    "public-key": publicKey,
    "short-id": "",
    "support-x25519mlkem768": false,
    "mldsa65-verify": key.subarray(-1952).toString("base64url"),
  };
  await using server = await serve(({ authKey }) => realityCertificate(authKey));
  await assert.rejects(dial(server.port, tlsProvider, { "reality-opts": keys }), /ML-DSA-65/);
});

test("a browser without TLS 1.3 is refused when the node is opened", async () => {
  await assert.rejects(dial(1, tlsProvider, { "client-fingerprint": "android" }), ConfigError);
});
