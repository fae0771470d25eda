import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { BUFFER_BYTES, EAGAIN, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { encodeStreamRequest } from "#transport/mux/request.ts";
import * as smux from "#transport/mux/smux-frame.ts";
import * as yamux from "#transport/mux/yamux-frame.ts";
import { MemoryWire } from "../../../../test/support/memory-wire.ts";
import type { KeptClientStream } from "./kept-client.ts";
import { KeptMuxSession } from "./kept-mux-session.ts";
import { newMuxFraming } from "./mux-framings.ts";
import type { WireIo } from "./wire.ts";

const REQUEST = encodeStreamRequest({ kind: "stream", destination: { host: "a.test", ip: null, port: 80 } });
const PREFACE = Buffer.of(1, 0, 0);
const OPENINGS = {
  smux: smux.encodeHead(smux.SYN, 3, 0),
  yamux: yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.SYN, 3, 0),
};
const HEADS = {
  smux: (bytes: number) => smux.encodeHead(smux.PSH, 3, bytes),
  yamux: (bytes: number) => yamux.encodeHead(yamux.DATA, 0, 3, bytes),
};

class EndingWire extends MemoryWire {
  isEnded = false;

  override endWriting = (): number => {
    this.isEnded = true;
    return 0;
  };
}

function newSession(protocol: "smux" | "yamux", hasRoom = true) {
  const calls = { buffer: new Uint8Array(BUFFER_BYTES + 64), receive: () => EAGAIN, unsent: () => 0 };
  const io: WireIo = {
    calls: calls as unknown as RelayCalls,
    bufferedBytes: 0,
    wakeAtMs: Infinity,
  };
  const wire = new EndingWire(Buffer.alloc(0));
  const streams: KeptClientStream[] = [];
  const onStream = (stream: KeptClientStream): boolean => {
    streams.push(stream);
    return hasRoom;
  };
  const host = { awaits: () => assert.fail(), hears() {}, onStream, wake() {}, wakeStream() {} };
  const session = new KeptMuxSession(wire, newMuxFraming(protocol), PREFACE.length, host);
  const say = (...bytes: readonly Uint8Array[]): void => {
    wire.arrived = Buffer.concat(bytes);
    session.turn(io);
  };
  return { io, wire, streams, session, say };
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Without garbage. */
function heldBytes(): number {
  collect();
  collect(); // what the first one has found is given back behind it
  return process.memoryUsage().arrayBuffers;
}

for (const [what, leftBytes] of [
  ["nothing", 0],
  ["a byte", 1],
] as const)
  test(`streams that have ${what} waiting keep no memory for more`, () => {
    const { io, wire, session, streams, say } = newSession("smux");
    const bodyBytes = 60_000;
    const frame = Buffer.concat([smux.encodeHead(smux.PSH, 0, bodyBytes), Buffer.alloc(bodyBytes)]);
    say(PREFACE);
    const before = heldBytes();
    for (let nth = 0; nth < 200; nth++) {
      const id = 3 + 2 * nth;
      say(smux.encodeHead(smux.SYN, id, 0), smux.encodeHead(smux.PSH, id, REQUEST.length), REQUEST);
      frame.writeUInt32LE(id, 4);
      for (let part = 0; part < 4; part++) {
        wire.arrived = frame;
        session.turn(io);
      }
      const stream = streams[nth] ?? assert.fail();
      for (let left = 4 * bodyBytes; left > leftBytes;)
        left -= stream.read(io, Math.min(BUFFER_BYTES, left - leftBytes));
      assert.equal(stream.available(io), leftBytes || EAGAIN);
    }
    const grownBytes = heldBytes() - before;
    assert.ok(grownBytes < 20_000_000, `${grownBytes}`);
    session.drop(io);
  });

for (const protocol of ["smux", "yamux"] as const) {
  const open = OPENINGS[protocol];
  const head = HEADS[protocol];

  test(`${protocol}: a session without streams ends in time, and one with streams stays`, (t) => {
    let nowMs = 1_000;
    t.mock.method(performance, "now", () => nowMs);
    const { io, wire, session, streams, say } = newSession(protocol);
    say(PREFACE, open, head(REQUEST.length), REQUEST);
    const [stream = assert.fail()] = streams;
    assert.deepEqual(Buffer.from(stream.request), REQUEST);
    for (let ticks = 0; ticks < 60; ticks++) {
      nowMs += 15_000;
      if (protocol === "yamux") wire.arrived = Buffer.from(yamux.encodeHead(yamux.PING, yamux.ACK, 0, ticks));
      session.turn(io);
    }
    assert.equal(session.isOver, false);
    stream.drop();
    for (let ticks = 0; ticks < 18; ticks++) {
      nowMs += 15_000;
      session.turn(io);
    }
    assert.equal(session.isOver, false);
    for (let ticks = 0; ticks < 4; ticks++) {
      nowMs += 15_000;
      session.turn(io);
    }
    assert.ok(session.isOver && wire.isEnded);
  });

  test(`${protocol}: a stream that does not say where it leads is ended in time`, (t) => {
    let nowMs = 1_000;
    t.mock.method(performance, "now", () => nowMs);
    const { session, say, streams } = newSession(protocol);
    say(PREFACE, open, head(3), REQUEST.subarray(0, 3));
    for (let ticks = 0; ticks < 5; ticks++) {
      assert.equal(session.streams, 1);
      nowMs += 15_000;
      say(protocol === "yamux" ? yamux.encodeHead(yamux.PING, yamux.ACK, 0, ticks) : Buffer.alloc(0));
    }
    assert.equal(session.streams, 0);
    say(head(REQUEST.length - 3), REQUEST.subarray(3));
    assert.equal(streams.length, 0);
  });

  test(`${protocol}: without a slot a stream is refused alone`, () => {
    const { session, say, wire } = newSession(protocol, false);
    say(PREFACE, open, head(REQUEST.length + 5), REQUEST, Buffer.from("hello"));
    assert.equal(session.streams, 0);
    say(head(5), Buffer.from("again"));
    assert.equal(session.isDead, false);
    assert.ok(wire.isEnded === false);
  });
}

test("yamux: frames behind what waits for slow readers are read, up to a bound", () => {
  const { io, wire, session, streams, say } = newSession("yamux");
  const window = yamux.OUR_WINDOW;
  /** Whether a ping behind all that is read. */
  const isHeard = (...bytes: readonly Uint8Array[]): boolean => {
    wire.sent = Buffer.alloc(0);
    say(...bytes, yamux.encodeHead(yamux.PING, yamux.SYN, 0, 7));
    for (let left = -1; left !== wire.arrived.length; session.turn(io)) left = wire.arrived.length;
    return wire.sent.includes(yamux.encodePingAnswer(7));
  };
  const body = Buffer.alloc(window - REQUEST.length);
  const fill = (id: number): boolean =>
    isHeard(
      yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.SYN, id, 0),
      yamux.encodeHead(yamux.DATA, 0, id, window),
      REQUEST,
      body,
    );
  const most = yamux.MAX_HELD_BYTES / window;
  say(PREFACE);
  for (let nth = 0; nth < most; nth++) assert.ok(fill(1 + 2 * nth), `stream ${nth}`);
  assert.equal(fill(1 + 2 * most), false);
  for (const stream of streams.slice(0, 6)) while (stream.read(io, BUFFER_BYTES) > 0);
  assert.ok(isHeard(wire.arrived));
  session.drop(io);
});
