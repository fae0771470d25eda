import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { FramedLayer, WireRemainder } from "#core/wire-state.ts";
import { BUFFER_BYTES, EAGAIN } from "#platform/linux/relay-calls.ts";
import { encodeData, encodeFrame, encodeWaste, PSH } from "#protocols/shared/stream-frame.ts";
import { FramedWire, type ReleasedWire, type ReturningWire } from "./framed.ts";
import { Readiness } from "./readiness.ts";
import { HANDS_BACK, type WireIo } from "./wire.ts";

const buffer = new Uint8Array(BUFFER_BYTES + 64);
const io = { calls: { buffer }, bufferedBytes: 0 } as unknown as WireIo;

/** Gives what has arrived, in the pieces that it arrived in. */
class MemoryWire extends Readiness implements ReturningWire {
  readonly pending = false;
  readonly fd = -1;
  readonly written: Buffer[] = [];
  #pieces: Uint8Array[];

  constructor(pieces: readonly Uint8Array[]) {
    super();
    this.#pieces = pieces.filter(({ length }) => length > 0);
  }

  read(_: WireIo, size: number): number {
    const [piece, ...others] = this.#pieces;
    if (piece === undefined) return EAGAIN;
    const bytes = Math.min(size, piece.length);
    buffer.set(piece.subarray(0, bytes));
    this.#pieces = bytes < piece.length ? [piece.subarray(bytes), ...others] : others;
    return bytes;
  }

  available(): number {
    return this.#pieces[0]?.length ?? EAGAIN;
  }

  write(_: WireIo, size: number): number {
    this.written.push(Buffer.from(buffer.slice(0, size)));
    return size;
  }

  flush(): number {
    return 0;
  }

  endWriting(): number {
    return 0;
  }

  release(): ReleasedWire {
    return { failed: false, unsent: null, opened: null, records: null };
  }

  drop(): void {}
}

function open(pieces: readonly Uint8Array[], layer: Partial<FramedLayer> = {}) {
  const inner = new MemoryWire(pieces);
  const left: WireRemainder[] = [];
  const start = { kind: "framed", stream: 3, dataLeft: 0, unread: null, ...layer } as const;
  const wire = new FramedWire(inner, start, (remainder) => void left.push(remainder));
  return { wire, inner, left };
}

/** All payload up to where the wire gives up, or has nothing more. */
function readAll(wire: FramedWire, size: number): readonly [payload: Buffer, last: number] {
  const payload: Buffer[] = [];
  for (;;) {
    const looked = wire.available(io);
    const bytes = looked < 0 ? looked : wire.read(io, size);
    if (bytes === EAGAIN || bytes === HANDS_BACK) return [Buffer.concat(payload), bytes];
    if (bytes > 0) payload.push(Buffer.from(buffer.slice(0, bytes)));
  }
}

const bytesOf = (size: number): Buffer => Buffer.from(Uint8Array.from({ length: size }, (_, at) => at));

test("payload is the same however the session is torn, and what is not understood is kept as it came", () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 6 });
  const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 12 });
  const foreign = fc.constantFrom(
    Buffer.alloc(0),
    encodeFrame(3, 3),
    encodeWaste(20),
    encodeData(4, bytesOf(9)),
  );
  const property = fc.property(
    sizes,
    cuts,
    foreign,
    fc.nat(3),
    fc.integer({ min: 1, max: 500 }),
    (parts, at, other, ahead, size) => {
      const data = parts.map(bytesOf);
      const behind = other.length === 0 ? [] : [other, encodeData(3, bytesOf(50))];
      const session = Buffer.concat([...data.map((part) => encodeData(3, part)), ...behind]);
      const pieces: Buffer[] = [];
      let from = 0;
      for (const cut of at) pieces.push(session.subarray(from, (from += cut)));
      pieces.push(session.subarray(from));
      const unread = Buffer.concat(pieces.slice(0, ahead));
      const { wire, left } = open(pieces.slice(ahead), { unread: unread.length > 0 ? unread : null });
      const [payload, last] = readAll(wire, size);
      assert.ok(payload.equals(Buffer.concat(data)));
      assert.equal(last, other.length === 0 ? EAGAIN : HANDS_BACK);
      if (last === HANDS_BACK) assert.equal(wire.readable, true, "it is to be asked again");
      wire.drop(io);
      const kept = left[0]?.unread ?? assert.fail("nothing was spared");
      assert.ok(Buffer.concat(behind).subarray(0, kept.length).equals(kept));
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test("a whole buffer goes out in frames that fill records", () => {
  const { wire, inner } = open([]);
  const payload = bytesOf(BUFFER_BYTES);
  buffer.set(payload);
  assert.equal(wire.write(io, payload.length), payload.length);
  const [written = Buffer.alloc(0), ...others] = inner.written;
  assert.equal(others.length, 0);
  const got: Buffer[] = [];
  for (let at = 0; at < written.length;) {
    assert.deepEqual([written[at], written.readUInt32BE(at + 1)], [PSH, 3]);
    const size = written.readUInt16BE(at + 5);
    got.push(written.subarray(at + 7, at + 7 + size));
    at += 7 + size;
    assert.ok(at === written.length || at % 16_384 === 0);
  }
  assert.ok(Buffer.concat(got).equals(payload));
});

test("first writes are cut and filled as their number says, and counted", () => {
  const lines = new Map([[2, [{ from: 40, to: 40 }, "check", { from: 90, to: 90 }] as const]]);
  const { wire, inner, left } = open([], { padding: { shapes: { stop: 4, lines }, writes: 1 } });
  const sizes = (size: number): readonly number[] => {
    inner.written.length = 0;
    assert.equal(wire.write(io, size), size);
    return inner.written.map(({ length }) => length);
  };
  assert.deepEqual(sizes(100), [107]);
  assert.deepEqual(sizes(100), [40, 90]);
  assert.deepEqual(sizes(100), [107]);
  assert.deepEqual(sizes(100), [107]);
  wire.drop(io);
  assert.equal(left[0]?.writes, 4);
});
