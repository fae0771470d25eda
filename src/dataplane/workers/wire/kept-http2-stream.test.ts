import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { BUFFER_BYTES, EAGAIN, type RelayCalls } from "#platform/linux/relay-calls.ts";
import * as http2 from "#transport/http2/frames.ts";
import { MemoryWire } from "../../../../test/support/memory-wire.ts";
import { message, REQUEST, requestFrame } from "../../../../test/support/kept-http2.ts";
import type { KeptClientStream, KeptSessionHost } from "./kept-client.ts";
import { PendingLimiter } from "#net/listen/pending-limiter.ts";
import { KeptHttp2Session } from "./kept-http2-session.ts";
import type { WireIo } from "./wire.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** A connection with what its client says, and the streams that have said something. */
function open(...frames: readonly Uint8Array[]) {
  const wire = new MemoryWire(Buffer.concat([http2.CLIENT_PREFACE, http2.encodeSettings([]), ...frames]));
  const calls = { buffer: new Uint8Array(BUFFER_BYTES + 64), receive: () => EAGAIN, unsent: () => 0 };
  const io: WireIo = { calls: calls as unknown as RelayCalls, bufferedBytes: 0, wakeAtMs: Infinity };
  const shown: KeptClientStream[] = [];
  const limiter = new PendingLimiter({ count: 8, bytes: Infinity });
  const host: KeptSessionHost = {
    awaits: (giveWay) => limiter.enter("a", 0, giveWay),
    hears: (one) => limiter.leave(one),
    onStream: (one) => shown.push(one) > 0,
    wake() {},
    wakeStream() {},
  };
  const session = new KeptHttp2Session(wire, { grpcServiceName: "Gun", h2: null, streamOne: null }, host);
  session.turn(io);
  return { io, limiter, session, shown, wire };
}

const said = (id: number, text: string, flags = 0): Buffer =>
  http2.encodeFrame(http2.DATA, flags, id, message(Buffer.from(text)));

test("behind a handshake that came alone a stream waits, and has not ended", () => {
  const { io, session, shown, wire } = open(requestFrame(1), said(1, "header"));
  const [stream = assert.fail()] = shown;
  assert.equal(Buffer.from(stream.request).toString(), "header");
  assert.equal(stream.consume(6), 6);
  assert.equal(stream.readable, false);
  assert.equal(stream.read(io, 100), EAGAIN);
  wire.arrived = Buffer.concat([wire.arrived, said(1, "payload")]);
  session.turn(io);
  assert.equal(stream.read(io, 100), 7);
  assert.equal(stream.read(io, 100), EAGAIN);
});

test("a frame that comes in pieces is shown when it is whole, or as much of it as may be shown", () => {
  const first = said(1, "a header", http2.END_STREAM);
  const { io, session, shown, wire } = open(requestFrame(1), first.subarray(0, 16));
  assert.equal(shown.length, 0);
  wire.arrived = first.subarray(16);
  session.turn(io);
  const [stream = assert.fail()] = shown;
  assert.equal(Buffer.from(stream.request).toString(), "a header");
  assert.equal(stream.consume(8), 8);
  assert.equal(stream.read(io, 100), 0);
  wire.arrived = Buffer.concat([requestFrame(3), said(3, "x".repeat(10_000)).subarray(0, 5_000)]);
  session.turn(io);
  assert.equal(shown.length, 2);
});

test("all at once, with the end", () => {
  const { io, shown } = open(requestFrame(1), said(1, "header and more", http2.END_STREAM));
  const [stream = assert.fail()] = shown;
  assert.equal(stream.consume(6), 6);
  assert.equal(stream.read(io, 100), 9);
  assert.equal(stream.read(io, 100), 0);
});

test("a handshake alone, with the end", () => {
  const { io, shown } = open(requestFrame(1), said(1, "header", http2.END_STREAM));
  const [stream = assert.fail()] = shown;
  assert.equal(stream.consume(6), 6);
  assert.equal(stream.read(io, 100), 0);
});

test("a stream that says nothing is not shown", () => {
  const { session, shown } = open(
    requestFrame(1, REQUEST, http2.END_STREAM),
    requestFrame(3),
    http2.encodeFrame(http2.DATA, 0, 3, Buffer.alloc(5)),
    http2.encodeFrame(http2.DATA, http2.END_STREAM, 3, Buffer.alloc(0)),
    requestFrame(5),
    http2.encodeNumber(http2.RST_STREAM, 5, http2.NO_ERROR),
  );
  assert.equal(shown.length, 0);
  assert.equal(session.streams, 0);
});

test("of streams that say nothing the oldest give way, and those that have ended, or spoken, do not count", () => {
  const { io, limiter, session, shown, wire } = open(
    requestFrame(1),
    requestFrame(3),
    requestFrame(5),
    requestFrame(7),
    said(1, "header"),
    http2.encodeNumber(http2.RST_STREAM, 3, http2.CANCEL),
    requestFrame(9),
    requestFrame(11),
  );
  assert.deepEqual([shown.length, session.streams, limiter.size], [1, 5, 4]);
  wire.arrived = requestFrame(13); // half of the bound is for one source
  wire.sent = Buffer.alloc(0);
  session.turn(io);
  assert.deepEqual([session.streams, limiter.size], [5, 4]);
  assert.ok(wire.sent.includes(http2.encodeNumber(http2.RST_STREAM, 5, http2.CANCEL)));
});

test("a client that asks without reading is owed little, until a stream of its has been opened", () => {
  const pings = (count: number): Buffer =>
    Buffer.concat(Array.from({ length: count }, () => http2.encodeFrame(http2.PING, 0, 0, Buffer.alloc(8))));
  for (const isKnown of [false, true]) {
    const { io, session, shown, wire } = open(requestFrame(1), said(1, "header"));
    if (isKnown) shown[0]?.consume(6);
    const ask = (count: number): void => {
      wire.arrived = pings(count);
      while (wire.arrived.length > 0 && !session.isDead) session.turn(io);
    };
    ask(10_000); // and reads
    assert.ok(session.isOpen);
    wire.writable = false;
    ask(3_000);
    assert.ok(session.isOpen);
    ask(3_000);
    assert.equal(session.isOpen, isKnown);
    ask(60_000);
    assert.equal(session.isOpen, false);
  }
});

test("fields in thousands of pieces take no more memory than their bytes", () => {
  const section = http2.encodeFrame(http2.HEADERS, 0, 1, Buffer.of(0x82));
  const pieces = Buffer.alloc(9 * 7_000, http2.encodeFrame(http2.CONTINUATION, 0, 1, Buffer.alloc(0)));
  const bytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = bytes();
  const sessions = Array.from({ length: 30 }, () => open(section, pieces));
  const each = (bytes() - before) / sessions.length;
  assert.ok(each < 300_000, `${each}`);
  assert.ok(sessions.every(({ session }) => session.isOpen));
});
