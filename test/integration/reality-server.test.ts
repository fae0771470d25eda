/** Our REALITY server: its clients get through, and everybody else sees dest. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import type { Dialer } from "#core/outbound.ts";
import { directDialer } from "../support/direct-accept.ts";
import { relayPlainly } from "../support/probing/dest.ts";
import {
  dialReality,
  helloWithToken,
  listening,
  mldsa65Seed,
  mldsa65Verify,
  openReality,
  openSite,
  plainHello,
  readAll,
  site,
} from "../support/reality.ts";

const DAY_MS = 86_400_000;

async function dial(port: number, keys: object = {}): Promise<Duplex> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  return await dialReality(socket, keys);
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

test("clients of a site that chooses another key exchange than before", async () => {
  await using classic = await openSite({ ecdhCurve: "X25519" });
  await using hybrid = await openSite({ ecdhCurve: "X25519MLKEM768" });
  const chosen = { port: classic.port };
  await using dest = await listening(
    createServer({ allowHalfOpen: true }, (socket) => void relayPlainly(socket, chosen.port)),
  );
  await using server = await openReality({ dest: dest.port });
  for (const { port } of [classic, classic, hybrid, hybrid, classic]) {
    chosen.port = port;
    const stream = await dial(server.port);
    stream.end("here");
    assert.equal(String(await readAll(stream)), "here");
  }
  assert.deepEqual(server.refused, []);
});

test("a client that says its hello before the site can be dialled, and one that ends behind it", async () => {
  await using dest = await openSite();
  const { promise: reachable, resolve: reach } = Promise.withResolvers<void>();
  const late: Dialer = {
    ...directDialer,
    async connect(to, context) {
      await reachable;
      return await directDialer.connect(to, context);
    },
  };
  await using server = await openReality({ dest: dest.port, more: { proxy: "late" }, through: () => late });
  const served = dial(server.port);
  const visitor = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  visitor.end(plainHello());
  await once(visitor, "finish");
  reach();
  assert.equal((await readAll(visitor))[0], 22, "the site's own handshake");
  const stream = await served;
  stream.end("here");
  assert.equal(String(await readAll(stream)), "here");
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
    more: { "mldsa65-seed": mldsa65Seed },
  });
  const stream = await dial(server.port, { "mldsa65-verify": mldsa65Verify });
  stream.end("signed");
  assert.equal(String(await readAll(stream)), "signed");
});

test("a dest whose certificate is too short for ML-DSA-65 is what the client sees", async () => {
  await using dest = await openSite();
  await using server = await openReality({
    dest: dest.port,
    more: { "mldsa65-seed": mldsa65Seed },
  });
  await assert.rejects(dial(server.port), /real site's certificate/);
  assert.match(server.refused.join(), /not imitated/);
});

test("a client without the key, the name or the short id sees the site's own certificate", async () => {
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
  const seen = await Promise.all(
    [any.port, strict.port].map((port) => ask(port, helloWithToken({ nowMs: Date.now() - DAY_MS }))),
  );
  assert.notEqual(seen[0]?.length, 0);
  assert.doesNotMatch(any.refused.join(), /no token/);
  assert.match(strict.refused.join(), /no token/);
});

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

test("dest gets each byte of a client that is not admitted, and its answer comes back, wherever the hello is cut", async () => {
  await using dest = await openHashing();
  await using server = await openReality({ dest: dest.port });
  const hello = plainHello();
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
  const hello = helloWithToken({ nowMs: Date.now() - DAY_MS });
  for (let size = 1; size < hello.length; size += 11) {
    const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.end(hello.subarray(0, size));
    assert.equal(String(await readAll(socket)), sha(hello.subarray(0, size)));
  }
});

test("the bytes of a dest that speaks first arrive, and one that resets resets the client", async () => {
  await using first = await listening(createServer((socket) => socket.end("220 hello\r\n")));
  await using server = await openReality({ dest: first.port });
  const received = connect({ port: server.port, host: "127.0.0.1" });
  assert.equal(String(await readAll(received)), "220 hello\r\n");
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
  const hello = plainHello();
  const [real, own] = [
    await lengthsOf(dest.port, hello),
    await lengthsOf(server.port, helloWithToken({ nowMs: Date.now() - DAY_MS })),
  ];
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
