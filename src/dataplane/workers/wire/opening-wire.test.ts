/** The headers in front of payload, between wires of memory that take and give as little as they like. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { HeaderStage } from "#core/handover.ts";
import { EAGAIN, EPIPE, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { OpeningWire } from "./opening-wire.ts";
import { Readiness } from "./readiness.ts";
import { BROKEN } from "./sealed-reader.ts";
import type { Wire, WireIo } from "./wire.ts";

const BUFFER_BYTES = 4096;

class Memory extends Readiness implements Wire {
  readonly pending = false;
  readonly fd = 7;
  override readonly bareSource = 7;
  override readonly bareTarget = 7;
  arrived: Buffer;
  sent: Buffer = Buffer.alloc(0);
  /** What each write takes, or an errno. */
  rooms: number[] = [];
  hasEnded = false;

  constructor(arrived: Buffer) {
    super();
    this.arrived = arrived;
  }

  read({ calls }: WireIo, size: number): number {
    const bytes = Math.min(size, this.arrived.length);
    calls.buffer.set(this.arrived.subarray(0, bytes));
    this.arrived = this.arrived.subarray(bytes);
    return bytes === 0 && !this.hasEnded ? EAGAIN : bytes;
  }

  available(): number {
    return this.arrived.length > 0 ? this.arrived.length : EAGAIN;
  }

  write({ calls }: WireIo, size: number): number {
    const room = this.rooms.shift() ?? size;
    if (room < 0) return room;
    const bytes = Math.min(room, size);
    this.sent = Buffer.concat([this.sent, calls.buffer.subarray(0, bytes)]);
    return bytes === 0 ? EAGAIN : bytes;
  }

  flush = (): number => 0;
  endWriting = (): number => 0;
  drop(): void {}
}

const openIo = (): WireIo => ({
  calls: { buffer: new Uint8Array(BUFFER_BYTES) } as unknown as RelayCalls,
  bufferedBytes: 0,
});
const FRESH: HeaderStage = { seenVersion: false, leftBytes: null };

/** All that can be read, and what the last read came to. */
function drain(wire: Wire, io: WireIo, size: number): { got: Buffer; last: number } {
  const got: Buffer[] = [];
  for (;;) {
    const bytes = wire.read(io, size);
    if (bytes <= 0) return { got: Buffer.concat(got), last: bytes };
    got.push(Buffer.from(io.calls.buffer.subarray(0, bytes)));
  }
}

test("a header of the peer is passed over wherever it is cut", () => {
  const whole = Buffer.concat([Buffer.of(0, 3, 9, 9, 9), Buffer.from("payload")]);
  for (const asks of [false, true])
    for (let cut = 0; cut <= whole.length; cut++) {
      const [memory, io] = [new Memory(whole.subarray(0, cut)), openIo()];
      const wire = new OpeningWire(memory, { ours: null, isOwed: false, theirs: FRESH });
      if (asks) wire.available(io);
      const first = drain(wire, io, 4);
      assert.equal(first.last, EAGAIN);
      assert.equal(wire.bareSource, cut < 5 ? -1 : 7);
      memory.arrived = whole.subarray(cut);
      memory.hasEnded = true;
      const second = drain(wire, io, 100);
      assert.equal(`${first.got}${second.got}`, "payload", `cut at ${cut}`);
      assert.equal(second.last, 0);
    }
});

test("goes on in the middle of a header", () => {
  for (const [theirs, bytes] of [
    [{ seenVersion: true, leftBytes: null }, [2, 9, 9]],
    [{ seenVersion: true, leftBytes: 2 }, [9, 9]],
    [{ seenVersion: true, leftBytes: 0 }, []],
  ] as const) {
    const memory = new Memory(Buffer.concat([Buffer.from(bytes), Buffer.from("payload")]));
    const wire = new OpeningWire(memory, { ours: null, isOwed: false, theirs });
    assert.equal(String(drain(wire, openIo(), 100).got), "payload");
  }
});

test("another version is a fault, an end without a header an end", () => {
  const strange = new OpeningWire(new Memory(Buffer.of(1, 0)), { ours: null, isOwed: false, theirs: FRESH });
  assert.equal(strange.read(openIo(), 10), BROKEN);
  const silent = new Memory(Buffer.alloc(0));
  silent.hasEnded = true;
  assert.equal(new OpeningWire(silent, { ours: null, isOwed: false, theirs: FRESH }).read(openIo(), 10), 0);
});

test("a header of ours goes out once, in one piece with the payload, however little is taken", () => {
  const ours = Buffer.from("header");
  const rooms = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 12 });
  fc.assert(
    fc.property(rooms, (sizes) => {
      const [memory, io] = [new Memory(Buffer.alloc(0)), openIo()];
      const wire = new OpeningWire(memory, { ours, isOwed: false, theirs: null });
      memory.rooms = [...sizes];
      let rest = Buffer.from("payload that follows");
      while (rest.length > 0) {
        io.calls.buffer.set(rest);
        const bytes = wire.write(io, rest.length);
        assert.ok(bytes === EAGAIN || bytes > 0);
        const kept = Math.max(0, bytes);
        // What was not taken lies where it lay.
        assert.ok(Buffer.from(io.calls.buffer.subarray(kept, rest.length)).equals(rest.subarray(kept)));
        rest = rest.subarray(kept);
      }
      assert.equal(String(memory.sent), "headerpayload that follows");
      assert.equal(wire.bareTarget, 7);
    }),
  );
});

test("a failed write is its errno, and a header that does not fit a fault of ours", () => {
  const [memory, io] = [new Memory(Buffer.alloc(0)), openIo()];
  const wire = new OpeningWire(memory, { ours: Buffer.from("h"), isOwed: false, theirs: null });
  memory.rooms = [EPIPE];
  assert.equal(wire.write(io, 5), EPIPE);
  assert.throws(() => wire.write(io, BUFFER_BYTES), RangeError);
});

for (const isOwed of [false, true])
  test(`where no payload comes, a header goes out ${isOwed ? "alone" : "never"}`, () => {
    const [memory, io] = [new Memory(Buffer.alloc(0)), openIo()];
    const wire = new OpeningWire(memory, { ours: Buffer.from("header"), isOwed, theirs: null });
    memory.rooms = [0, 4];
    if (isOwed) for (let turn = 0; turn < 2; turn++) assert.equal(wire.endWriting(io), EAGAIN);
    assert.equal(wire.endWriting(io), 0);
    assert.equal(String(memory.sent), isOwed ? "header" : "");
  });
