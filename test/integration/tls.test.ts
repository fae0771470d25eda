import assert from "node:assert/strict";
import { once } from "node:events";
import { createHash, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { connect, createServer } from "node:net";
import type { Duplex } from "node:stream";
import { duplexPair } from "node:stream";
import { createSecureContext } from "node:tls";
import { afterEach, describe, test } from "node:test";
import * as z from "zod";
import { NO_CHALLENGES } from "#core/acme.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import { abortStream } from "#core/stream.ts";
import { openTlsClient, type NodeClientOptions } from "#transport/tls/node-client.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { tlsClientFields, tlsServerFields } from "#transport/tls/fields.ts";
import { openTlsServer } from "#transport/tls/server.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { makeCertificate } from "../support/certificate.ts";
import { textFiles } from "../support/text-files.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const authority = makeCertificate({ names: ["Test Authority"] });
const server = makeCertificate({ names: ["server.test", "127.0.0.1"], issuer: authority });
const trusting = createSecureContext({ ca: authority.cert });

const sockets: Duplex[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.on("error", () => {}).destroy();
});

/** Two ends of a real TCP connection, half-open allowed. */
async function tcpPair(): Promise<[Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, resolve).listen(0, "127.0.0.1");
  await new Promise((on) => listener.once("listening", on));
  const { port } = listener.address() as { port: number };
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const accepted = await promise;
  listener.close();
  sockets.push(client, accepted);
  return [client, accepted];
}

const serverFields = (extra: object = {}) =>
  z.object(tlsServerFields).parse({ certificate: server.cert, "private-key": server.key, ...extra });

async function shake(
  pair: readonly [Duplex, Duplex],
  client: Partial<NodeClientOptions>,
  extra: object = {},
  alpn: string[] = [],
  files: SafeFiles = textFiles,
) {
  const options = readTlsServer(serverFields(extra), "listener test", { alpn });
  assert.ok(options !== null);
  const tls = await openTlsServer(options, { files, log: SILENT, native, challenges: NO_CHALLENGES });
  const accepted = tls.accept(pair[1]);
  accepted.catch(() => {});
  const opened = openTlsClient(
    pair[0],
    { serverName: "server.test", secureContext: trusting, ...client },
    AbortSignal.timeout(20_000),
  );
  const both = await Promise.allSettled([opened, accepted]);
  tls[Symbol.dispose]();
  return both;
}

async function opened(...args: Parameters<typeof shake>) {
  const [client, accepted] = await shake(...args);
  assert.ok(client.status === "fulfilled", `client: ${client.status === "rejected" && client.reason}`);
  assert.ok(accepted.status === "fulfilled");
  return { client: client.value, server: accepted.value };
}

const read = async (stream: Duplex): Promise<Buffer> => {
  const parts: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => parts.push(chunk));
  await new Promise((resolve, reject) => stream.once("end", resolve).once("error", reject));
  return Buffer.concat(parts);
};

describe("TLS", () => {
  for (const [kind, make] of [
    ["a kernel socket", tcpPair],
    ["any Duplex", async () => duplexPair()],
  ] as const) {
    test(`over ${kind}: names, ALPN, bulk both ways, half-close both ways`, async () => {
      const pair = await make();
      const { client, server: accepted } = await opened(pair, { alpn: ["h2", "http/1.1"] }, {}, ["http/1.1"]);
      assert.equal(accepted.serverName, "server.test");
      assert.equal(accepted.alpn, "http/1.1");
      assert.equal(client.alpnProtocol, "http/1.1");
      const bytes = randomBytes(4 << 20);
      const digest = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");
      // The client ends first; the server answers only after it saw that end.
      client.end(bytes);
      assert.equal(digest(await read(accepted.stream)), digest(bytes));
      accepted.stream.end(bytes);
      assert.equal(digest(await read(client)), digest(bytes));
    });

    test(`over ${kind}: the server ends first and still reads the client's bytes`, async () => {
      const pair = await make();
      const { client, server: accepted } = await opened(pair, {});
      accepted.stream.end("bye");
      assert.equal(String(await read(client)), "bye");
      client.end("still here");
      assert.equal(String(await read(accepted.stream)), "still here");
    });
  }

  test("TLS inside TLS", async () => {
    const outer = await opened(await tcpPair(), {});
    const inner = await opened([outer.client, outer.server.stream], {});
    inner.client.end("deep");
    assert.equal(String(await read(inner.server.stream)), "deep");
    inner.server.stream.end("deeper");
    assert.equal(String(await read(inner.client)), "deeper");
  });

  const refused = async (client: Partial<NodeClientOptions>, pattern: RegExp) => {
    const pair = await tcpPair();
    const [result] = await shake(pair, client);
    assert.ok(result.status === "rejected");
    assert.match(String(result.reason), pattern);
    assert.ok(pair[0].destroyed);
  };

  test("an unknown authority, a wrong name and a wrong pin are refused", async () => {
    await refused({ secureContext: createSecureContext() }, /certificate/);
    await refused({ serverName: "other.test" }, /other\.test/);
    await refused({ fingerprint: "00".repeat(32) }, /fingerprint/);
  });

  test("what is accepted: skip-cert-verify, a pinned leaf, a pinned authority, another name to verify", async () => {
    const chained = { certificate: server.cert + authority.cert };
    const untrusted = createSecureContext();
    await opened(await tcpPair(), { secureContext: untrusted, skipCertVerify: true });
    await opened(await tcpPair(), {
      secureContext: untrusted,
      serverName: "x.test",
      fingerprint: server.fingerprint,
    });
    await opened(await tcpPair(), { secureContext: untrusted, fingerprint: authority.fingerprint }, chained);
    const named = { serverName: "front.test", nameCertVerify: "server.test" };
    const front = await opened(await tcpPair(), named);
    assert.equal(front.server.serverName, "front.test");
    const address = await opened(await tcpPair(), { serverName: "127.0.0.1" });
    assert.equal(address.server.serverName, null);
    const pair = await tcpPair();
    const wrongName = { secureContext: untrusted, serverName: "x.test", fingerprint: authority.fingerprint };
    const [result] = await shake(pair, wrongName, chained);
    assert.ok(result.status === "rejected" && /x\.test/.test(String(result.reason)));
  });

  test("every client-auth-type against no, a bad and a good certificate", async () => {
    const good = makeCertificate({ names: ["client"], issuer: authority });
    const bad = makeCertificate({ names: ["client"] });
    const contexts = {
      none: trusting,
      bad: createSecureContext({ ca: authority.cert, cert: bad.cert, key: bad.key }),
      good: createSecureContext({ ca: authority.cert, cert: good.cert, key: good.key }),
    };
    const admitted = {
      "": ["none", "bad", "good"],
      request: ["none", "bad", "good"],
      "require-any": ["bad", "good"],
      "verify-if-given": ["none", "good"],
      "require-and-verify": ["good"],
    };
    for (const [type, expected] of Object.entries(admitted)) {
      const extra = {
        "client-auth-type": type,
        ...(type === "" ? {} : { "client-auth-cert": authority.cert }),
      };
      const seen: string[] = [];
      for (const [name, secureContext] of Object.entries(contexts)) {
        const [dialled, accepted] = await shake(await tcpPair(), { secureContext }, extra);
        if (accepted.status === "fulfilled") seen.push(name);
        else {
          assert.match(accepted.reason.name, /AuthError/);
          if (native === null || dialled.status === "rejected") continue;
          const told = dialled.value.errored ?? (await once(dialled.value, "error"))[0];
          assert.match(
            String(told),
            name === "none" ? /alert certificate required/ : /alert bad certificate/,
          );
        }
      }
      assert.deepEqual(seen, expected, `client-auth-type "${type}"`);
    }
  });

  test("misspelt or half given keys are configuration errors", async () => {
    const fault = (extra: object, pattern: RegExp) =>
      assert.throws(() => readTlsServer(serverFields(extra), "listener x"), pattern);
    fault({ "private-key": "" }, /both certificate and private-key/);
    fault({ "client-auth-type": "require-and-verify" }, /listener x: .*client-auth-cert/);
    fault(
      { "ech-key": "x", "client-auth-type": "request" },
      /ech-key and client-auth-type exclude each other/,
    );
    fault(
      { "ech-key": "x", certificate: "", "private-key": "" },
      /ech-key needs certificate and private-key/,
    );
    assert.throws(() => serverFields({ "client-auth-type": "required" }), /expected one of/);
    const fields = (extra: object) => z.object(tlsClientFields).parse(extra);
    const place = { node: "n", server: "h", files: textFiles };
    const ech = (extra: object) => fields({ "ech-opts": { enable: true, ...extra } });
    await assert.rejects(readTlsClient(ech({}), place), /proxy n: ech-opts: needs config/);
    await assert.rejects(readTlsClient(ech({ config: "AAAA" }), place), /proxy n: ech-opts.config: expected/);
    const there = { ...place, server: "10.0.0.1", resolver: { lookup: () => Promise.resolve([]) } };
    await assert.rejects(readTlsClient(ech({}), there), /10.0.0.1 is an address/);
    assert.equal((await readTlsClient(fields({ "ech-opts": { config: "?" } }), place)).ech, null);
    await assert.rejects(readTlsClient(fields({ certificate: server.cert }), place), /both/);
    assert.throws(() => fields({ fingerprint: "chrome" }), /client-fingerprint/);
    const colons = (server.fingerprint.match(/../g) as string[]).join(":").toUpperCase();
    assert.equal(
      (await readTlsClient(fields({ fingerprint: colons }), place)).fingerprint,
      server.fingerprint,
    );
  });

  test("changed files are used for new connections; half a change is not", async () => {
    const next = makeCertificate({ names: ["server.test"], issuer: authority });
    const texts = new Map([
      ["c.pem", server.cert],
      ["k.pem", server.key],
    ]);
    const watchers = new Map<string, (text: string) => void>();
    const files: SafeFiles = {
      ...textFiles,
      readPem: async (path) => texts.get(path) as string,
      watchPem: (path, on) => {
        watchers.set(path, on);
        return { [Symbol.dispose]: () => watchers.delete(path) };
      },
    };
    const fields = serverFields({ certificate: "c.pem", "private-key": "k.pem" });
    const options = readTlsServer(fields, "listener test");
    assert.ok(options !== null);
    const tls = await openTlsServer(options, { files, log: SILENT, native, challenges: NO_CHALLENGES });
    const seen = async () => {
      const pair = await tcpPair();
      const accepted = tls.accept(pair[1]);
      const clientOptions = { serverName: "server.test", secureContext: trusting };
      const client = await openTlsClient(pair[0], clientOptions, AbortSignal.timeout(20_000));
      const digest = client.getPeerX509Certificate()?.fingerprint256.replaceAll(":", "").toLowerCase();
      (await accepted).stream.destroy();
      client.on("error", () => {}).destroy();
      return digest;
    };
    assert.equal(await seen(), server.fingerprint);
    watchers.get("c.pem")?.(next.cert);
    assert.equal(await seen(), server.fingerprint);
    watchers.get("k.pem")?.(next.key);
    assert.equal(await seen(), next.fingerprint);
    tls[Symbol.dispose]();
    assert.equal(watchers.size, 0);
  });

  test("a client that speaks no TLS, and one that hangs up, cost only themselves", async () => {
    const options = readTlsServer(serverFields(), "listener test");
    assert.ok(options !== null);
    const tls = await openTlsServer(options, {
      files: textFiles,
      log: SILENT,
      native,
      challenges: NO_CHALLENGES,
    });
    const [plain, acceptedPlain] = await tcpPair();
    plain.on("error", () => {}).write("GET / HTTP/1.1\r\n\r\n");
    await assert.rejects(tls.accept(acceptedPlain), /ProtocolError|TLS handshake/);
    const [gone, acceptedGone] = await tcpPair();
    gone.end();
    await assert.rejects(tls.accept(acceptedGone), /handshake/);
    plain.destroy();
    gone.destroy();
  });

  test("an aborted handshake ends at once, and a fault ends a TLS stream without throwing", async () => {
    const [client, silent] = await tcpPair();
    const aborter = new AbortController();
    const dialing = openTlsClient(client, { serverName: "a.test" }, aborter.signal);
    aborter.abort();
    await assert.rejects(dialing, { reason: "aborted" });
    assert.ok(client.destroyed);
    silent.destroy();
    const pair = await opened(await tcpPair(), {});
    pair.server.stream.on("error", () => {});
    abortStream(
      pair.client.on("error", () => {}),
      new Error("fault"),
    );
    assert.ok(pair.client.destroyed);
    pair.server.stream.destroy();
  });
});
