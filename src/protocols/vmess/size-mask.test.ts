import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { SizeMask } from "./size-mask.ts";

const IV = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");
/** Of more than three permutations. */
const NUMBERS = 300;

test("masks are the numbers of SHAKE128, from the first one on or from any other", () => {
  const stream = createHash("shake128", { outputLength: 2 * NUMBERS })
    .update(IV)
    .digest();
  const wanted = Array.from({ length: NUMBERS }, (_, index) => stream.readUInt16BE(2 * index));
  for (const drawn of [0, 1, 83, 84, 85, 168, 200]) {
    const mask = new SizeMask(IV, drawn);
    assert.equal(mask.drawn, drawn);
    const got = Array.from({ length: NUMBERS - drawn }, () => mask.next());
    assert.deepEqual(got, wanted.slice(drawn));
  }
});
