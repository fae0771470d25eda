import assert from "node:assert/strict";
import { test } from "node:test";
import { drawBytes } from "./random-bytes.ts";

test("bytes are drawn once, however many, in memory of their own", () => {
  const seen = new Set<string>();
  for (let round = 0; round < 2_000; round++)
    for (const size of [8, 16, 32, 64, 65]) {
      const drawn = drawBytes(size);
      assert.equal(drawn.length, size);
      assert.equal(drawn.buffer.byteLength, size);
      seen.add(drawn.toString("hex", 0, 8));
    }
  assert.equal(seen.size, 10_000);
  assert.equal(drawBytes(0).length, 0);
});

test("their bits are even", () => {
  let ones = 0;
  for (let round = 0; round < 4_000; round++)
    for (const byte of drawBytes(16)) for (let bits = byte; bits > 0; bits >>= 1) ones += bits & 1;
  const half = (4_000 * 16 * 8) / 2;
  assert.ok(Math.abs(ones - half) < half * 0.02, `${ones} of ${half * 2}`);
});
