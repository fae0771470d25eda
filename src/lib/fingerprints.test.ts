import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Fingerprints } from "./fingerprints.ts";

test("members are those that were added, each once", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 300 }), (values) => {
      const [set, known] = [new Fingerprints(), new Set<string>()];
      for (const value of values) {
        const text = Buffer.from(value).toString("hex");
        assert.equal(set.has(value), known.has(text));
        assert.equal(set.add(value), !known.has(text));
        known.add(text);
        assert.equal(set.has(value), true);
      }
      assert.equal(set.size, known.size);
    }),
  );
});

test("fifty thousand are kept while the table grows, and none of as many others is among them", () => {
  const set = new Fingerprints();
  const value = Buffer.alloc(16);
  const numbered = (number: number): Buffer => {
    value.writeUInt32BE(number, 12);
    return value;
  };
  for (let number = 0; number < 50_000; number++) assert.equal(set.add(numbered(number)), true);
  for (let number = 0; number < 50_000; number++) assert.equal(set.has(numbered(number)), true);
  for (let number = 50_000; number < 100_000; number++) assert.equal(set.has(numbered(number)), false);
  set.clear();
  assert.equal(set.size, 0);
  assert.equal(set.has(numbered(1)), false);
});
