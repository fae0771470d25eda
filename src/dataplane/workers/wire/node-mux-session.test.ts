import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { BUFFER_BYTES, EAGAIN, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import * as yamux from "#transport/mux/yamux-frame.ts";
import { NodeMuxSession } from "./node-mux-session.ts";
import { NodeMuxStream } from "./node-mux-stream.ts";
import { SmuxFraming } from "./smux-framing.ts";
import { MemoryWire } from "../../../../test/support/memory-wire.ts";
import type { WireIo } from "./wire.ts";
import { YamuxFraming } from "./yamux-framing.ts";

const buffer = new Uint8Array(BUFFER_BYTES + 64);
const OK = Buffer.of(0);
const NOTHING = Buffer.alloc(0);

/** A connection that may take nothing any more. */
class SlowWire extends MemoryWire {
  isEnded = false;

  override write(io: WireIo, size: number): number {
    return this.writable ? super.write(io, size) : EAGAIN;
  }

  override endWriting = (): number => {
    this.isEnded = true;
    return 0;
  };
}

const newIo = (): WireIo => {
  const calls = { buffer, receive: () => EAGAIN, unsent: () => 0 } as unknown as RelayCalls;
  return { calls, bufferedBytes: 0, wakeAtMs: Infinity };
};

const REQUEST = Buffer.from("where");
const open = (session: NodeMuxSession, io: WireIo): NodeMuxStream => {
  const stream = new NodeMuxStream(session, REQUEST, () => {});
  stream.begin(io);
  io.calls.buffer.set(Buffer.from("ping"));
  assert.equal(stream.write(io, 4), 4);
  return stream;
};

test("a session without streams ends in time, and one with streams stays", (t) => {
  let nowMs = 1_000;
  t.mock.method(performance, "now", () => nowMs);
  for (const framing of [new SmuxFraming(), new YamuxFraming()]) {
    const wire = new SlowWire(NOTHING);
    const io = newIo();
    const session = new NodeMuxSession(wire, framing, Buffer.of(0, 0), () => {});
    const stream = open(session, io);
    for (let ticks = 0; ticks < 3; ticks++) {
      io.wakeAtMs = Infinity;
      session.turn(io);
      assert.ok(session.isUsable);
      assert.equal(io.wakeAtMs, nowMs + 15_000);
      nowMs += 15_000;
    }
    stream.drop();
    for (let ticks = 0; ticks < 2 && !session.isOver; ticks++) {
      session.turn(io);
      nowMs += 15_000;
    }
    session.turn(io);
    assert.ok(session.isOver && wire.isEnded);
    assert.equal(session.isUsable, false);
  }
});

test("a peer of yamux that answers no pings loses its streams, one that does keeps them", (t) => {
  let nowMs = 1_000;
  t.mock.method(performance, "now", () => nowMs);
  for (const answers of [true, false]) {
    const wire = new SlowWire(NOTHING);
    const io = newIo();
    const session = new NodeMuxSession(wire, new YamuxFraming(), Buffer.of(0, 1), () => {});
    const stream = open(session, io);
    for (let ticks = 0; ticks < 5; ticks++) {
      nowMs += 15_000;
      session.turn(io);
      if (answers) wire.arrived = Buffer.from(yamux.encodeHead(yamux.PING, yamux.ACK, 0, ticks + 1));
    }
    assert.equal(session.isUsable, answers);
    assert.equal(stream.available(io), answers ? EAGAIN : BROKEN);
  }
});

test("numbers of streams do not begin anew", () => {
  const io = newIo();
  const last = Object.assign(new SmuxFraming(), { firstId: 0xffff_fff7 });
  const session = new NodeMuxSession(new SlowWire(NOTHING), last, Buffer.of(0, 0), () => {});
  let streams = 0;
  for (; session.isUsable; streams++) open(session, io);
  assert.ok(streams > 0 && streams <= 3, `${streams}`);
});

test("a peer that asks without reading fills no memory", (t) => {
  t.mock.method(performance, "now", () => 1_000); // each turn reads all that there is, however slow the machine is
  const wire = new SlowWire(NOTHING);
  const io = newIo();
  const session = new NodeMuxSession(wire, new YamuxFraming(), Buffer.of(0, 1), () => {});
  const ping = yamux.encodeHead(yamux.PING, yamux.SYN, 0, 1);
  const pings = Buffer.concat(Array.from({ length: 10_000 }, () => ping));
  wire.writable = false;
  let rounds = 0;
  for (; rounds < 100 && !session.isOver; rounds++) {
    wire.arrived = pings;
    session.turn(io);
  }
  assert.ok(session.isDead && rounds < 20, `${rounds} times`);
});

test("a connection that takes nothing any more is closed as it is", (t) => {
  let nowMs = 1_000;
  t.mock.method(performance, "now", () => nowMs);
  const wire = new SlowWire(NOTHING);
  const io = newIo();
  const session = new NodeMuxSession(wire, new YamuxFraming(), Buffer.of(0, 1), () => {});
  wire.writable = false;
  session.retire();
  session.turn(io);
  assert.equal(session.isOver, false);
  nowMs = io.wakeAtMs;
  session.turn(io);
  assert.ok(session.isOver);
});

test("what a reader leaves is bounded, and what comes behind waits in the connection", () => {
  const wire = new SlowWire(NOTHING);
  const io = newIo();
  const session = new NodeMuxSession(wire, new SmuxFraming(), Buffer.of(0, 0), () => {});
  const stream = open(session, io);
  const body = Buffer.alloc(32_768, 7);
  const frame = Buffer.concat([Buffer.of(1, 2, 0, 128, 3, 0, 0, 0), body]);
  const sent = 400;
  wire.arrived = Buffer.concat([
    Buffer.of(1, 2, 1, 0, 3, 0, 0, 0),
    OK,
    ...Array.from({ length: sent }, () => frame),
  ]);
  for (let turns = 0; turns < 200; turns++) session.turn(io);
  const left = wire.arrived.length;
  assert.ok(left > 2 * 1024 * 1024, `${left}`);
  let got = 0;
  for (let turns = 0; turns < 1000 && got < sent * body.length; turns++) {
    const bytes = stream.read(io, 65_536);
    if (bytes > 0) got += bytes;
    session.turn(io);
  }
  assert.equal(got, sent * body.length);
});
