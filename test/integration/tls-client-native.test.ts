/** What only the library itself can be asked: that it says what node:tls says, and that nothing of it stays behind. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { NativeTls } from "#platform/tls.ts";
import { makeCertificate } from "../support/certificate.ts";
import { freePort, missing } from "../support/peer.ts";
import { helloOf, type Hello } from "../support/client-hello.ts";
import type { TlsClient } from "#core/tls.ts";
import { tlsProvider } from "../support/tls.ts";
import {
  certificate,
  dialPlain,
  openTlsOrigin,
  tlsClient,
  tlsDials,
  type DialedPlace,
  type TlsDial,
  type TlsOrigin,
} from "../support/tls-origin.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const skip = native === null ? "no FFI" : false;
const byNative = tlsDials.find(({ name }) => name === "native")?.dial as TlsDial;

/** What a client says first; it is left without an answer. */
async function firstWords(dial: TlsDial, fields: object, place: DialedPlace): Promise<Hello> {
  const said = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => {
    const parts: Buffer[] = [];
    socket
      .on("error", () => {})
      .on("data", (bytes: Buffer) => {
        const all = Buffer.concat([...parts.splice(0), bytes]);
        parts.push(all);
        if (all.length < 5 + all.readUInt16BE(3)) return;
        said.resolve(all);
        socket.destroy();
      });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  await assert.rejects(dial((server.address() as AddressInfo).port, fields, place));
  server.close();
  return helloOf(await said.promise);
}

test("both ways of dialling say the same, in the same order", { skip }, async () => {
  const own = makeCertificate({ names: ["me"] });
  for (const fields of [
    {},
    { alpn: ["h2", "http/1.1"] },
    { "skip-cert-verify": true },
    { fingerprint: own.fingerprint, certificate: own.cert, "private-key": own.key },
  ])
    for (const place of [{}, { serverName: "127.0.0.1" }, { minVersion: "TLSv1.3" as const }]) {
      const hellos = [];
      for (const { dial } of tlsDials) hellos.push(await firstWords(dial, fields, place));
      const [byNode, byLibrary] = hellos as [Hello, Hello];
      assert.deepEqual(byLibrary, byNode);
      assert.ok(byNode.suites.length > 2 && byNode.extensions.length > 5);
    }
});

/** One connection to the end: what the origin says of it, behind a greeting that has the ticket with it. */
async function visit(client: TlsClient, origin: TlsOrigin): Promise<boolean> {
  const accepted = origin.accepted();
  const { stream } = await client.open(await dialPlain(origin.port), {
    signal: AbortSignal.timeout(20_000),
    bypassable: false,
  });
  const socket = await accepted;
  const isReused = socket.isSessionReused();
  socket.write("hello");
  await once(stream, "data");
  const closed = Promise.all([once(stream, "close"), once(socket, "close")]);
  stream.resume().end();
  socket.resume().end();
  await closed;
  return isReused;
}

test("a node's connections go on with the sessions of earlier ones", { skip }, async () => {
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    await using origin = await openTlsOrigin({ maxVersion });
    const client = await tlsClient(tlsProvider, {});
    const reused = [];
    for (let at = 0; at < 4; at++) reused.push(await visit(client, origin));
    assert.deepEqual(reused, [false, true, true, true], maxVersion);
    const another = await tlsClient(tlsProvider, {});
    assert.equal(await visit(another, origin), false, "nodes share none");
  }
});

test(
  "nothing is gone on with where a chain must be shown, nor with a server that was refused",
  { skip },
  async () => {
    await using origin = await openTlsOrigin();
    const pinned = await tlsClient(tlsProvider, { fingerprint: certificate.fingerprint });
    assert.deepEqual([await visit(pinned, origin), await visit(pinned, origin)], [false, false]);
    const wrong = await tlsClient(tlsProvider, {}, { serverName: "other.test" });
    for (let at = 0; at < 2; at++) await assert.rejects(visit(wrong, origin), /other\.test/);
  },
);

test("a thousand dials leave no descriptor and nothing of the library", { skip }, async (t) => {
  const { ssl, clients } = native as NativeTls;
  const made = t.mock.method(clients, "connect");
  const freed = t.mock.method(ssl, "free");
  await using origin = await openTlsOrigin({ allowHalfOpen: false });
  const one = async (at: number): Promise<void> => {
    const serverName = at % 4 === 0 ? "other.test" : "server.test";
    const signal = at % 5 === 0 ? AbortSignal.timeout(1) : AbortSignal.timeout(30_000);
    const opened = await byNative(origin.port, {}, { serverName, signal }).catch(() => null);
    if (opened === null) return;
    const closed = once(opened.stream, "close");
    opened.stream.destroy();
    await closed;
  };
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const before = descriptors();
  for (let round = 0; round < 50; round++)
    await Promise.all(Array.from({ length: 20 }, (_, at) => one(round * 20 + at)));
  while (descriptors() > before) await delay(5); // those of the server's side close when they notice it
  assert.ok(made.mock.callCount() >= 800); // some left before they had said anything
  assert.equal(freed.mock.callCount(), made.mock.callCount());
});

test("keys that a server updates", { skip: skip || missing("openssl"), timeout: 30_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-tls-"));
  const port = await freePort();
  writeFileSync(join(folder, "c.pem"), certificate.cert);
  writeFileSync(join(folder, "k.pem"), certificate.key);
  const files = ["-cert", join(folder, "c.pem"), "-key", join(folder, "k.pem")];
  const child = spawn("openssl", ["s_server", "-accept", `127.0.0.1:${port}`, ...files, "-tls1_3"]);
  try {
    let said = "";
    for (const out of [child.stdout, child.stderr])
      out.on("data", (bytes: Buffer) => (said += String(bytes)));
    const until = async (text: string): Promise<void> => {
      while (!said.includes(text)) {
        assert.equal(child.exitCode, null, said);
        await delay(2);
      }
    };
    await until("ACCEPT");
    const { stream } = await byNative(port);
    let received = "";
    stream.on("data", (bytes: Buffer) => (received += String(bytes)));
    for (let at = 0; at < 12; at++) {
      const command = at % 2 === 0 ? "K" : "k"; // with an update of ours asked for, and without
      child.stdin.write(`${command}\n`);
      stream.write(`up ${at}\n`); // by the time that it sees this it has read the command
      await until(`up ${at}\n`);
      child.stdin.write(`down ${at}\n`);
      while (!received.includes(`down ${at}\n`)) await once(stream, "data");
    }
    const closed = once(child, "close");
    child.stdin.end("Q\n");
    await closed;
    assert.equal(said.split("SSL_do_handshake -> 1").length - 1, 12);
    stream.destroy();
  } finally {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
