import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { WaitingBytes } from "./waiting-bytes.ts";

test("what is taken is what was given, however it was cut", () => {
  const piece = fc.uint8Array({ maxLength: 5000 });
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.constant(null)), { maxLength: 60 }), (steps) => {
      const waiting = new WaitingBytes();
      const [given, taken]: [Uint8Array[], Uint8Array[]] = [[], []];
      for (const step of steps) {
        if (step !== null) {
          waiting.push(step);
          given.push(step);
        } else {
          const next = waiting.shift();
          if (next !== null) taken.push(next);
        }
      }
      for (let next = waiting.shift(); next !== null; next = waiting.shift()) taken.push(next);
      assert.ok(waiting.isEmpty);
      assert.deepEqual(Buffer.concat(taken), Buffer.concat(given));
    }),
  );
});

test("a stream that brings much gives large pieces, one that brings little keeps little", () => {
  const waiting = new WaitingBytes();
  const packet = new Uint8Array(1400).fill(7);
  waiting.push(packet);
  assert.ok((waiting.shift()?.buffer.byteLength ?? 0) <= 4096);
  const sizes: number[] = [];
  for (let turn = 0; turn < 20; turn++) {
    for (let count = 0; count < 60; count++) waiting.push(packet);
    for (let piece = waiting.shift(); piece !== null; piece = waiting.shift()) sizes.push(piece.length);
  }
  assert.ok(Math.max(...sizes) === 64 * 1024);
  for (let turn = 0; turn < 10; turn++) {
    waiting.push(packet);
    waiting.shift();
  }
  waiting.push(packet);
  assert.ok((waiting.shift()?.buffer.byteLength ?? 0) <= 8192);
});

test("single bytes that are kept take no memory of many", () => {
  const waiting = new WaitingBytes();
  const memory = new Set<ArrayBufferLike>();
  for (let count = 0; count < 10_000; count++) {
    waiting.push(Uint8Array.of(1));
    memory.add((waiting.shift() as Buffer).buffer);
  }
  assert.equal(memory.size, 10_000); // each is given away with its piece
  const bytes = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
  assert.ok(bytes < 50 * 10_000, `${bytes} bytes`);
});
