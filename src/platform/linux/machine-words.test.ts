import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { NumberWords, RecentWords } from "./machine-words.ts";

/** Whole ones, of which some share a place of the small table. */
const numbers = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 40 }).map((index) => index * 16_406),
    fc.integer({ min: 0, max: 40 }).map((index) => index * 2 ** 20),
    fc.maxSafeNat(),
  ),
);

test("words are the numbers, and those of a base what they come to with it", () => {
  const words = new NumberWords();
  const base = 0x7fff_1234_5678n;
  const addresses = new RecentWords(base);
  fc.assert(
    fc.property(numbers, (values) => {
      for (const value of [...values, ...values]) {
        assert.equal(words.of(value), BigInt(value));
        assert.equal(addresses.of(value), base + BigInt(value));
      }
    }),
  );
});
