/** The headers in front of payload, between wires of memory that take and give as little as they like. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { HeaderStage } from "#core/wire-state.ts";
import { EAGAIN, EPIPE } from "#platform/linux/relay-calls.ts";
import { BUFFER_BYTES, drain, MemoryWire, openIo } from "../../../../test/support/memory-wire.ts";
import { OpeningWire } from "./opening-wire.ts";
import { BROKEN } from "./sealed-reader.ts";

const FRESH: HeaderStage = { seenVersion: false, leftBytes: null };

test("a header of the peer is passed over wherever it is cut", () => {
  const whole = Buffer.concat([Buffer.of(0, 3, 9, 9, 9), Buffer.from("payload")]);
  for (const asks of [false, true])
    for (let cut = 0; cut <= whole.length; cut++) {
      const [memory, io] = [new MemoryWire(whole.subarray(0, cut)), openIo()];
      const wire = new OpeningWire(memory, { kind: "opening", ours: null, isOwed: false, theirs: FRESH });
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
    const memory = new MemoryWire(Buffer.concat([Buffer.from(bytes), Buffer.from("payload")]));
    const wire = new OpeningWire(memory, { kind: "opening", ours: null, isOwed: false, theirs });
    assert.equal(String(drain(wire, openIo(), 100).got), "payload");
  }
});

test("another version is a fault, an end without a header an end", () => {
  const strange = new OpeningWire(new MemoryWire(Buffer.of(1, 0)), {
    kind: "opening",
    ours: null,
    isOwed: false,
    theirs: FRESH,
  });
  assert.equal(strange.read(openIo(), 10), BROKEN);
  const silent = new MemoryWire(Buffer.alloc(0));
  silent.hasEnded = true;
  assert.equal(
    new OpeningWire(silent, { kind: "opening", ours: null, isOwed: false, theirs: FRESH }).read(openIo(), 10),
    0,
  );
});

test("a header of ours goes out once, in one piece with the payload, however little is taken", () => {
  const ours = Buffer.from("header");
  const rooms = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 12 });
  fc.assert(
    fc.property(rooms, (sizes) => {
      const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
      const wire = new OpeningWire(memory, { kind: "opening", ours, isOwed: false, theirs: null });
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
  const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
  const wire = new OpeningWire(memory, {
    kind: "opening",
    ours: Buffer.from("h"),
    isOwed: false,
    theirs: null,
  });
  memory.rooms = [EPIPE];
  assert.equal(wire.write(io, 5), EPIPE);
  assert.throws(() => wire.write(io, BUFFER_BYTES), RangeError);
});

for (const isOwed of [false, true])
  test(`where no payload comes, a header goes out ${isOwed ? "alone" : "never"}`, () => {
    const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
    const wire = new OpeningWire(memory, {
      kind: "opening",
      ours: Buffer.from("header"),
      isOwed,
      theirs: null,
    });
    memory.rooms = [0, 4];
    if (isOwed) for (let turn = 0; turn < 2; turn++) assert.equal(wire.endWriting(io), EAGAIN);
    assert.equal(wire.endWriting(io), 0);
    assert.equal(String(memory.sent), isOwed ? "header" : "");
  });

test("a header that nothing came to follow goes out alone when it is due, in whatever pieces", () => {
  const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
  const layer = { kind: "opening", ours: Buffer.from("header"), isOwed: true, theirs: null } as const;
  const patient = new OpeningWire(memory, { ...layer, afterMs: 60_000 });
  patient.begin(io);
  assert.ok(io.wakeAtMs < Infinity);
  assert.equal(patient.pending, false);
  const wire = new OpeningWire(memory, { ...layer, afterMs: 0 });
  memory.rooms = [0, 2];
  assert.equal(wire.pending, true);
  assert.equal(wire.flush(io), EAGAIN);
  assert.equal(wire.flush(io), 2);
  assert.equal(wire.flush(io), 4);
  assert.equal(wire.pending, false);
  io.calls.buffer.set(Buffer.from("rest"));
  assert.equal(wire.write(io, 4), 4);
  assert.equal(String(memory.sent), "headerrest");
  const broken = new OpeningWire(memory, { ...layer, afterMs: 0 });
  memory.rooms = [EPIPE];
  assert.equal(broken.flush(io), EPIPE);
});
