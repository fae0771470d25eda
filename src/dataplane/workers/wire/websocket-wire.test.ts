/** Frames of WebSocket between wires of memory, cut anywhere. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { WebSocketFrame } from "#core/wire-state.ts";
import { EAGAIN, EPIPE } from "#platform/linux/relay-calls.ts";
import { FrameReader } from "#transport/websocket/frame-reader.ts";
import {
  BINARY,
  CLOSE,
  CONTINUATION,
  encodeClose,
  encodeFrame,
  PING,
  PONG,
  type WebSocketRole,
} from "#transport/websocket/frames.ts";
import { drain, MemoryWire, openIo } from "../../../../test/support/memory-wire.ts";
import { MaskKeys } from "./mask-keys.ts";
import { BROKEN } from "./sealed-reader.ts";
import { WebSocketWire } from "./websocket-wire.ts";

const NOTHING = { onPayload() {}, onPing() {}, onClose() {} };
const FRESH: WebSocketFrame = new FrameReader("server", NOTHING).within;
const ROLES = ["client", "server"] as const;
const other = (role: WebSocketRole): WebSocketRole => (role === "client" ? "server" : "client");

interface Opened {
  readonly wire: WebSocketWire;
  readonly memory: MemoryWire;
}

function openWire(role: WebSocketRole, arrived: Uint8Array = Buffer.alloc(0), reading = FRESH): Opened {
  const memory = new MemoryWire(Buffer.from(arrived));
  const wire = new WebSocketWire(memory, { kind: "websocket", role, reading }, new MaskKeys());
  return { wire, memory };
}

/** What a peer reads of frames. */
function payloadOf(role: WebSocketRole, frames: Uint8Array) {
  const bytes = Buffer.from(frames);
  const payload: Buffer[] = [];
  const pings: Buffer[] = [];
  let hasClosed = false;
  const sink = {
    onPayload: (from: number, to: number) => void payload.push(Buffer.from(bytes.subarray(from, to))),
    onPing: (ping: Uint8Array) => void pings.push(Buffer.from(ping)),
    onClose: () => void (hasClosed = true),
  };
  new FrameReader(role, sink).read(bytes, 0, bytes.length);
  return { payload: Buffer.concat(payload), pings: String(Buffer.concat(pings)), hasClosed };
}

const opcodes = fc.constantFrom(BINARY, CONTINUATION, PING, PONG);
const pieces = fc.array(fc.tuple(opcodes, fc.uint8Array({ maxLength: 400 })), { maxLength: 12 });
const asks = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 });

test("frames of any kind come out as their payload, wherever the reading has begun and is cut", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ROLES), pieces, asks, fc.nat(500), (role, frames, sizes, beginning) => {
      const short = frames.map(
        ([opcode, body]) => [opcode, opcode < CLOSE ? body : body.slice(0, 125)] as const,
      );
      const sent = Buffer.concat(short.map(([opcode, body]) => encodeFrame(other(role), opcode, body)));
      const wanted = Buffer.concat(short.flatMap(([opcode, body]) => (opcode < CLOSE ? [body] : [])));
      const begun: Buffer[] = [];
      const first = sent.subarray(0, beginning);
      const onPayload = (from: number, to: number): void =>
        void begun.push(Buffer.from(first.subarray(from, to)));
      const reader = new FrameReader(role, { ...NOTHING, onPayload });
      reader.read(first, 0, first.length);
      const { wire, memory } = openWire(role, sent.subarray(beginning), reader.within);
      memory.hasEnded = true;
      const io = openIo();
      const got = [...begun, ...sizes.map((size) => drain(wire, io, size).got)];
      assert.deepEqual(Buffer.concat(got), wanted);
      assert.equal(wire.read(io, 10), 0);
      assert.equal(wire.readable, true);
    }),
  );
});

for (const role of ROLES) {
  test(`as ${role}: what is written is framed, however little is taken below`, () => {
    const rooms = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 20 });
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 5 }),
        rooms,
        (all, sizes) => {
          const { wire, memory } = openWire(role);
          const io = openIo();
          memory.rooms = [...sizes];
          for (const piece of all) {
            while (wire.pending) wire.flush(io);
            io.calls.buffer.set(piece);
            assert.equal(wire.write(io, piece.length), piece.length);
          }
          while (wire.pending) wire.flush(io);
          assert.equal(io.bufferedBytes, 0);
          assert.deepEqual(payloadOf(other(role), memory.sent).payload, Buffer.concat(all));
        },
      ),
    );
  });

  test(`as ${role}: a ping is answered when this side has its turn, behind what waits`, () => {
    const { wire, memory } = openWire(role, encodeFrame(other(role), PING, Buffer.from("beat")));
    const io = openIo();
    memory.rooms = [3];
    io.calls.buffer.set(Buffer.from("hello"));
    wire.write(io, 5);
    assert.equal(drain(wire, io, 100).last, EAGAIN);
    while (wire.pending) wire.flush(io);
    const [hello, pong] = [
      encodeFrame(role, BINARY, Buffer.from("hello")),
      encodeFrame(role, PONG, Buffer.from("beat")),
    ];
    assert.equal(memory.sent.length, hello.length + pong.length);
    assert.equal(memory.sent[hello.length], 0x80 | PONG);
  });

  test(`as ${role}: bytes that are no frames are a fault, behind what came before`, () => {
    const masked = role === "client" ? 0x80 : 0;
    const strange: readonly (readonly number[])[] = [
      [0x92, masked ^ 0x80],
      [0x83, masked ^ 0x80],
      [0x09, masked ^ 0x80],
      [0x89, (masked ^ 0x80) | 126, 0, 200],
      [0x82, masked],
      [0x82, (masked ^ 0x80) | 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    for (const head of strange) {
      const { wire } = openWire(
        role,
        Buffer.concat([
          encodeFrame(other(role), BINARY, Buffer.from("ab")),
          Buffer.from(head),
          Buffer.alloc(8),
        ]),
      );
      assert.deepEqual(drain(wire, openIo(), 100), { got: Buffer.from("ab"), last: BROKEN });
    }
  });

  test(`as ${role}: a failed write is its errno`, () => {
    const { wire, memory } = openWire(role);
    memory.rooms = [EPIPE];
    assert.equal(wire.write(openIo(), 5), EPIPE);
  });

  test(`as ${role}: what is there is known without being read`, () => {
    const frames = [PING, BINARY, BINARY].map((opcode) =>
      encodeFrame(other(role), opcode, Buffer.from("abc")),
    );
    const { wire } = openWire(role, Buffer.concat(frames));
    const io = openIo();
    assert.equal(wire.available(io), 3);
    assert.equal(wire.read(io, 2), 2);
    assert.equal(wire.available(io), 1);
    assert.equal(wire.read(io, 1), 1);
    assert.equal(wire.available(io), 3);
    assert.equal(drain(wire, io, 9).got.length, 3);
    assert.equal(wire.available(io), EAGAIN);
  });
}

test("random bytes, and frames that are spoilt, never do more than end it", () => {
  const frames = fc.uint8Array({ maxLength: 300 }).map((body) => encodeFrame("client", BINARY, body));
  const hostile = fc.tuple(fc.oneof(fc.uint8Array({ maxLength: 400 }), frames), fc.nat(20), fc.nat(255));
  fc.assert(
    fc.property(fc.array(hostile, { maxLength: 4 }), asks, (pieces, sizes) => {
      const bytes = Buffer.concat(pieces.map(([piece]) => piece));
      for (const [, at, value] of pieces) if (at < bytes.length) bytes[at] = value;
      const { wire, memory } = openWire("server", bytes);
      memory.hasEnded = true;
      const io = openIo();
      let gotBytes = 0;
      for (const size of sizes) {
        const available = wire.available(io);
        assert.ok(available >= BROKEN);
        gotBytes += drain(wire, io, size).got.length;
      }
      assert.ok(gotBytes <= bytes.length);
      assert.ok([0, BROKEN].includes(wire.read(io, 1)));
      while (wire.pending) wire.flush(io);
      assert.ok(memory.sent.length <= 131, "more than one answer to pings");
    }),
  );
});

test("behind a close frame nothing is read, and the other direction goes on", () => {
  const body = encodeFrame("client", BINARY, Buffer.from("last"));
  const { wire, memory } = openWire("server", Buffer.concat([body, encodeClose("client"), body]));
  const io = openIo();
  assert.deepEqual(drain(wire, io, 100), { got: Buffer.from("last"), last: 0 });
  io.calls.buffer.set(Buffer.from("answer"));
  wire.write(io, 6);
  memory.rooms = [1];
  assert.equal(wire.endWriting(io), EAGAIN);
  while (wire.pending) wire.flush(io);
  assert.equal(wire.endWriting(io), 0);
  const { payload, hasClosed } = payloadOf("client", memory.sent);
  assert.deepEqual([String(payload), hasClosed], ["answer", true]);
  assert.equal(wire.pending, false);
});

test("a client's end waits for silence, or for the server's end", () => {
  const { wire, memory } = openWire("client");
  const io = openIo();
  memory.readable = false;
  assert.equal(wire.endWriting(io), EAGAIN);
  assert.ok(io.wakeAtMs < Infinity);
  assert.equal(memory.sent.length, 0);
  memory.arrived = encodeClose("server");
  memory.readable = true;
  assert.equal(drain(wire, io, 100).last, 0);
  assert.equal(wire.endWriting(io), 0);
  assert.equal(payloadOf("server", memory.sent).hasClosed, true);
});

test("a client's end is said at once where the answer has no reader", () => {
  const { wire, memory } = openWire("client");
  const io = openIo();
  assert.equal(wire.endWriting(io), EAGAIN);
  wire.onUnwanted();
  assert.equal(wire.endWriting(io), 0);
  assert.equal(payloadOf("server", memory.sent).hasClosed, true);
});
