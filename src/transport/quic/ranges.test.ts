import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RangeSet } from "./ranges.ts";
import { Reassembly } from "./streams/reassembly.ts";

const change = fc.record({ isAdded: fc.boolean(), from: fc.nat(60), size: fc.nat(12) });

test("ranges hold what a set of numbers would", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const ranges = new RangeSet();
      const model = new Set<number>();
      for (const { isAdded, from, size } of changes) {
        if (isAdded) ranges.add(from, from + size);
        else ranges.remove(from, from + size);
        for (let value = from; value < from + size; value++)
          if (isAdded) model.add(value);
          else model.delete(value);
        let last = -1;
        for (let place = 0; place < ranges.size; place++) {
          assert.ok(ranges.fromAt(place) > last && ranges.toAt(place) > ranges.fromAt(place));
          last = ranges.toAt(place);
        }
        for (let value = 0; value < 75; value++) assert.equal(ranges.has(value), model.has(value));
      }
    }),
  );
});

test("bytes in any order, cut anyhow, come out in order and once", () => {
  const whole = Buffer.from(Array.from({ length: 80 }, (_, index) => index));
  fc.assert(
    fc.property(fc.array(fc.record({ from: fc.nat(79), size: fc.nat(20) }), { maxLength: 40 }), (pieces) => {
      const reassembly = new Reassembly();
      let out = Buffer.alloc(0);
      const take = (bytes: Uint8Array) => void (out = Buffer.concat([out, bytes]));
      for (const { from, size } of pieces) {
        const memory = Buffer.from(whole.subarray(from, from + size));
        reassembly.add(from, memory, take);
        memory.fill(0xff); // it was lent
      }
      assert.deepEqual(out, whole.subarray(0, out.length));
      for (let from = 79; from >= 0; from--) reassembly.add(from, whole.subarray(from, from + 1), take);
      assert.deepEqual(out, whole);
    }),
  );
});
