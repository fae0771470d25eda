/** What only TLS by the library itself can do wrong: it shares the library with others, and its objects with threads. */
import assert from "node:assert/strict";
import { scryptSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { detachable, type Detachable } from "#core/handover.ts";
import type { WireRemainder } from "#core/wire-state.ts";
import { FramedWire } from "#dataplane/workers/wire/framed.ts";
import type { TaskIo } from "#dataplane/workers/worker/task.ts";
import { TlsWire } from "#dataplane/workers/wire/tls.ts";
import { RECORD_BYTES, Ssl } from "#platform/linux/ssl.ts";
import { FULL, type NativeTls } from "#platform/tls.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { nativeTls } from "../support/native-tls.ts";
import { ffiFor } from "#platform/ffi.ts";

const native = nativeTls as NativeTls;
const skip = native === null ? "SKIP TLS by the library: needs Linux and node:ffi" : false;

/** Both ends of a connection: the listener's, and a client of node:tls. */
async function openBoth(): Promise<[stream: Duplex, client: TLSSocket]> {
  using tls = await openListenerTls(native);
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ port: (server.address() as AddressInfo).port, rejectUnauthorized: false });
  client.setNoDelay(true);
  const [socket] = (await once(server, "connection")) as [Socket];
  server.close();
  const [{ stream }] = await Promise.all([
    tls.accept(socket, { bypassable: true }),
    once(client, "secureConnect"),
  ]);
  return [stream, client];
}

test("an error that other code left in the library's queue is not taken for its own", { skip }, async () => {
  const [stream, client] = await openBoth();
  stream.on("data", (chunk: Buffer) => {
    stream.write(chunk);
    assert.throws(() => scryptSync("", "", 16, { N: 1 << 20, maxmem: 1 })); // node:crypto leaves its error there
  });
  const closed = once(stream, "close");
  for (let round = 0; round < 3; round++) {
    client.write("hello");
    const [received] = (await Promise.race([once(client, "data"), closed])) as [unknown];
    assert.equal(String(received), "hello");
  }
  client.destroy();
  stream.destroy();
});

test("a write to a detached stream writes nothing: its SSL object has another owner", { skip }, async () => {
  const [stream, client] = await openBoth();
  stream.on("error", () => {});
  const offer = detachable(stream) as Detachable;
  const [object] = offer.detach().numbers as [number];
  let received = "";
  client.on("data", (chunk: Buffer) => (received += String(chunk)));
  stream.write("too late");
  stream.end();
  const closed = once(client, "close");
  native.ssl.free(BigInt(object));
  native.calls.close(offer.socket as number);
  await closed;
  assert.equal(received, "");
  stream.destroy();
});

test("one read opens so many records and no more, however little is in them", { skip }, async () => {
  const [stream, client] = await openBoth();
  const offer = detachable(stream) as Detachable;
  const [object] = offer.detach().numbers as [number];
  for (let count = 0; count < 200; count++) await new Promise((resolve) => void client.write("x", resolve)); // else some of them would share a record
  const recordBytes = 5 + 1 + 1 + 16; // RFC 8446 §5.2: its header, the byte, its type, the tag
  while (native.calls.available(offer.socket as number) < 200 * recordBytes) await nextTurn();
  const first = native.ssl.read(BigInt(object), 64 * 1024);
  assert.ok(first > 0 && first <= 64, `${first} records`);
  assert.equal(native.ssl.outcome, FULL);
  let total = first;
  while (native.ssl.outcome === FULL) total += native.ssl.read(BigInt(object), 64 * 1024);
  assert.equal(total, 200);
  native.ssl.free(BigInt(object));
  native.calls.close(offer.socket as number);
  client.destroy();
  stream.destroy();
});

/** The library of one thread, in which the second piece of something cannot be sealed. */
class Failing extends Ssl {
  readonly #fail: () => number;

  constructor(fail: () => number) {
    super(ffiFor("this test"), native.calls.buffer);
    this.#fail = fail;
  }

  override write(object: bigint, size: number): number {
    if (size < 2 * RECORD_BYTES) return super.write(object, size);
    return super.write(object, RECORD_BYTES) + this.#fail();
  }
}

for (const [what, fail] of [
  ["is refused by the library", () => 0],
  ["meets a fault of ours", () => assert.fail("a fault of ours")],
] as const)
  test(`what was sealed before a piece that ${what} never goes to another's peer`, { skip }, async () => {
    const ssl = new Failing(fail);
    const { calls } = native;
    const io = { calls, bufferedBytes: 0 } as unknown as TaskIo;
    const [one, oneClient] = await openBoth();
    const [other, otherClient] = await openBoth();
    const ends = [one, other].map((stream) => {
      const offer = detachable(stream) as Detachable;
      const object = offer.detach().numbers[0] as number;
      assert.ok(ssl.outgoing.collect(BigInt(object)));
      return { object, fd: offer.socket as number };
    });
    const [first, second] = ends as [(typeof ends)[number], (typeof ends)[number]];
    const left: WireRemainder[] = [];
    const layer = { kind: "framed", stream: 1, dataLeft: 0, unread: null } as const;
    const inner = new TlsWire(ssl, BigInt(first.object), first.fd, { returns: true });
    const port = new FramedWire(inner, layer, (remains) => void left.push(remains));
    try {
      assert.ok(port.write(io, 100_000) < 0);
    } catch {
      // a worker drops the connection then, too
    }
    port.drop(io);
    assert.equal(left[0]?.failed, true);
    const next = new TlsWire(ssl, BigInt(second.object), second.fd);
    calls.buffer.set(Buffer.from("for the other one"));
    assert.equal(next.write(io, 17), 17);
    const closed = once(otherClient, "close").then(() => ["nothing: it was cut off"]);
    const [received] = (await Promise.race([once(otherClient, "data"), closed])) as [unknown];
    assert.equal(String(received), "for the other one");
    next.drop(io);
    ssl.free(BigInt(first.object));
    for (const { fd } of ends) calls.close(fd);
    for (const stream of [one, other, oneClient, otherClient]) stream.destroy();
  });
