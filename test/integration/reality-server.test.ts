/** Our REALITY server: its clients get through, and everybody else sees dest. */
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomBytes, createPublicKey } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as tlsConnect, createServer as createTlsServer } from "node:tls";
import { SILENT } from "#core/log.ts";
import { toDestination } from "#net/address/ip.ts";
import { openTrust } from "#net/dial/trust.ts";
import { sealHello } from "#transport/reality/token.ts";
import { mldsa65Key } from "#transport/reality/server/own-certificate.ts";
import { chooseSecurityServer } from "#transport/security.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { acceptedSocket } from "../support/accepted.ts";
import { makeCertificate } from "../support/certificate.ts";
import { directDialer } from "../support/direct-accept.ts";
import { textFiles } from "../support/text-files.ts";
import { tlsProvider } from "../support/tls.ts";

const site = makeCertificate({ names: ["site.test"] });
const trust = await openTrust([site.cert], textFiles, "tls.custom-certifactes");
const { d: privateKey = "", x: publicKey = "" } = generateKeyPairSync("x25519").privateKey.export({
  format: "jwk",
});
const seed = randomBytes(32);
const mldsa65 = createPublicKey(mldsa65Key(seed))
  .export({ type: "spki", format: "der" })
  .subarray(-1952)
  .toString("base64url");
const NAMES = ["site.test"];
const SHORT_ID = "0123456789abcdef";
const SIGNAL_MS = 15_000;

async function listening(server: Server) {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.on("close", () => sockets.delete(socket));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** A site with TLS; it greets whoever completes a handshake. */
async function openSite(more: object = {}) {
  const server = createTlsServer({ cert: site.cert, key: site.key, ...more }, (socket) => {
    socket.on("error", () => {}).end("HTTP/1.1 200 OK\r\n\r\nthe site");
  });
  return await listening(server.on("tlsClientError", () => {}));
}

interface ServerOptions {
  readonly dest: number;
  readonly more?: object;
  readonly bypassable?: boolean;
  readonly on?: (stream: Duplex) => void;
}

/** The REALITY server; what it accepts echoes, unless `on` says otherwise. */
async function openReality({ dest, more = {}, bypassable = false, on = echo }: ServerOptions) {
  const security = await chooseSecurityServer(
    {
      "client-auth-type": "",
      "reality-config": {
        dest: toDestination("127.0.0.1", dest),
        "private-key": privateKey,
        "short-id": [SHORT_ID],
        "server-names": NAMES,
        "max-time-difference": 0,
        proxy: undefined,
        xver: 0,
        "mldsa65-seed": "",
        ...more,
      },
    },
    {
      where: "listener r",
      alpn: [],
      bypassable: () => bypassable,
      carriesHttp2: false,
      tls: tlsProvider,
      files: textFiles,
      dialer: directDialer,
      nowMs: Date.now,
      log: SILENT,
    },
  );
  const refused: string[] = [];
  const server = await listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      security.accept(acceptedSocket(socket)).then(
        ({ stream }) => on(stream.on("error", () => {})),
        (error: Error) => refused.push(error.message),
      );
    }),
  );
  return {
    port: server.port,
    refused,
    async [Symbol.asyncDispose]() {
      security[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function echo(stream: Duplex): void {
  stream.pipe(stream);
}

async function dial(port: number, keys: object = {}): Promise<Duplex> {
  const reality = {
    "public-key": publicKey,
    "short-id": SHORT_ID,
    "support-x25519mlkem768": true,
    ...keys,
  };
  const place = { node: "n", server: "127.0.0.1", serverName: "site.test", files: textFiles, trust };
  const fields = { "skip-cert-verify": false, "reality-opts": reality };
  const client = tlsProvider.makeClient(await readTlsClient(fields, place), SILENT);
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  return (await client.open(socket, { signal: AbortSignal.timeout(SIGNAL_MS) })).stream;
}

async function readAll(stream: Duplex): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const bytes of stream) pieces.push(bytes as Buffer);
  return Buffer.concat(pieces);
}

const sha = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

for (const [group, hybrid] of [
  ["X25519", false],
  ["X25519MLKEM768", true],
] as const)
  for (const suite of ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
    test(`1 MiB each way and a half-close, ${group}, ${suite}`, async () => {
      await using dest = await openSite({ ecdhCurve: group, ciphers: suite });
      await using server = await openReality({ dest: dest.port });
      const stream = await dial(server.port, { "support-x25519mlkem768": hybrid });
      const sent = randomBytes(1 << 20);
      stream.end(sent);
      assert.equal(sha(await readAll(stream)), sha(sent));
    });

test("a server that speaks first, through a bypassable layer", async () => {
  await using dest = await openSite();
  await using server = await openReality({
    dest: dest.port,
    bypassable: true,
    on: (stream) => stream.end("welcome"),
  });
  const stream = await dial(server.port);
  assert.equal(String(await readAll(stream)), "welcome");
  stream.destroy();
});

test("a signature of ML-DSA-65 is there where a seed is, and dest's certificate has room for it", async () => {
  const large = { cert: site.cert.repeat(12), key: site.key };
  await using dest = await openSite(large);
  await using server = await openReality({
    dest: dest.port,
    more: { "mldsa65-seed": seed.toString("base64url") },
  });
  const stream = await dial(server.port, { "mldsa65-verify": mldsa65 });
  stream.end("signed");
  assert.equal(String(await readAll(stream)), "signed");
});

test("a dest whose certificate is too short for ML-DSA-65 is what the client sees", async () => {
  await using dest = await openSite();
  await using server = await openReality({
    dest: dest.port,
    more: { "mldsa65-seed": seed.toString("base64url") },
  });
  await assert.rejects(dial(server.port), /real site's certificate/);
  assert.match(server.refused.join(), /cannot be imitated/);
});

test("who has no key, no name or no short id sees the site's own certificate", async () => {
  await using dest = await openSite();
  await using server = await openReality({ dest: dest.port });
  for (const keys of [{ "short-id": "0123" }, { "public-key": randomBytes(32).toString("base64url") }])
    await assert.rejects(dial(server.port, keys), /real site's certificate/);
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const visitor = tlsConnect({
      port: server.port,
      host: "127.0.0.1",
      servername: "site.test",
      ca: [site.cert],
      maxVersion,
    });
    assert.match(String(await readAll(visitor)), /the site$/);
  }
});

test("a client with another clock is let in unless its time is limited", async () => {
  await using dest = await openSite();
  await using any = await openReality({ dest: dest.port });
  await using strict = await openReality({ dest: dest.port, more: { "max-time-difference": 60_000 } });
  const seen = await Promise.all([any.port, strict.port].map((port) => ask(port, oldHello())));
  assert.notEqual(seen[0]?.length, 0);
  assert.doesNotMatch(any.refused.join(), /no token/);
  assert.match(strict.refused.join(), /no token/);
});

/** A day old. */
function oldHello(): Buffer {
  const hello = buildHello(CHROME_133, { serverName: "site.test", protocols: null });
  const keys = {
    publicKey: Buffer.from(publicKey, "base64url"),
    shortId: Buffer.from(SHORT_ID, "hex"),
    clientVersion: [26, 7, 28],
  } as const;
  const { message } = sealHello(hello, keys, Date.now() - 86_400_000).hello;
  return plainRecord(RECORD.handshake, message, 0x0301);
}

/** The first bytes that come back, or all until the end. */
async function ask(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {}).write(bytes);
  const [first] = await Promise.race([
    once(socket, "data") as Promise<[Buffer]>,
    once(socket, "close").then(() => [Buffer.alloc(0)]),
  ]);
  socket.destroy();
  return first ?? Buffer.alloc(0);
}

/** Answers with the hash of all that came once the client has said all. */
async function openHashing() {
  return await listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      const hash = createHash("sha256");
      socket.on("data", (bytes) => hash.update(bytes)).on("end", () => socket.end(hash.digest("hex")));
    }),
  );
}

test("dest gets each byte of whoever is not let in, and its answer comes back, wherever the hello is cut", async () => {
  await using dest = await openHashing();
  await using server = await openReality({ dest: dest.port });
  const hello = plainRecord(
    RECORD.handshake,
    buildHello(CHROME_133, { serverName: "site.test", protocols: null }).message,
    0x0301,
  );
  const probes = [
    randomBytes(3000),
    Buffer.from("GET / HTTP/1.1\r\nhost: site.test\r\n\r\n"),
    Buffer.alloc(0),
    Buffer.concat([hello, randomBytes(200)]),
    ...Array.from({ length: Math.ceil(hello.length / 7) }, (_, at) => hello.subarray(0, at * 7)),
  ];
  for (const probe of probes) {
    const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.end(probe);
    assert.equal(String(await readAll(socket)), sha(probe));
  }
});

test("a valid token cut anywhere reaches dest as it is, too", async () => {
  await using dest = await openHashing();
  await using server = await openReality({ dest: dest.port });
  const hello = oldHello();
  for (let size = 1; size < hello.length; size += 11) {
    const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.end(hello.subarray(0, size));
    assert.equal(String(await readAll(socket)), sha(hello.subarray(0, size)));
  }
});

test("a dest that speaks first is heard, and one that resets resets the client", async () => {
  await using first = await listening(createServer((socket) => socket.end("220 hello\r\n")));
  await using server = await openReality({ dest: first.port });
  const heard = connect({ port: server.port, host: "127.0.0.1" });
  assert.equal(String(await readAll(heard)), "220 hello\r\n");
  await using cutting = await listening(
    createServer((socket) => socket.once("data", () => socket.resetAndDestroy())),
  );
  await using other = await openReality({ dest: cutting.port });
  const cut = connect({ port: other.port, host: "127.0.0.1" });
  cut.write("anything");
  await assert.rejects(once(cut, "end"), { code: "ECONNRESET" });
});

test("a dest that cannot be reached costs the client its connection, without a byte", async () => {
  const gone = await listening(createServer());
  await gone[Symbol.asyncDispose]();
  await using server = await openReality({ dest: gone.port });
  const socket = connect({ port: server.port, host: "127.0.0.1" });
  assert.equal((await readAll(socket)).length, 0);
});

test("the record lengths of an admitted hello are those of dest", async () => {
  await using dest = await openSite({ ecdhCurve: "X25519" });
  await using server = await openReality({ dest: dest.port });
  const hello = plainRecord(
    RECORD.handshake,
    buildHello(CHROME_133, { serverName: "site.test", protocols: null }).message,
    0x0301,
  );
  const [real, own] = [await lengthsOf(dest.port, hello), await lengthsOf(server.port, oldHello())];
  assert.deepEqual(
    own.map((length, at) => (Math.abs(length - (real[at] ?? 0)) <= 3 ? "same" : length)), // an ECDSA signature has 70 to 72 bytes
    real.map(() => "same"),
  );
});

/** Lengths of the records of the answer: hello, change, and the flight. */
async function lengthsOf(port: number, hello: Buffer): Promise<number[]> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(hello);
  const lengths: number[] = [];
  let said = Buffer.alloc(0);
  for await (const bytes of socket) {
    said = Buffer.concat([said, bytes as Buffer]);
    lengths.length = 0;
    for (let at = 0; at + 5 <= said.length; at += 5 + said.readUInt16BE(at + 3))
      lengths.push(said.readUInt16BE(at + 3));
    if (lengths.length >= 6) break;
  }
  return lengths;
}
