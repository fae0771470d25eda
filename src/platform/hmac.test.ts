import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { digest, hmac, runningDigest } from "./hmac.ts";

const HASHES = ["sha256", "sha384", "sha512"] as const;
/** Around the blocks of 64 and 128 bytes, around what sizes are kept for, and beyond what is done without node:crypto. */
const SIZES = [
  0, 1, 31, 32, 55, 56, 63, 64, 65, 111, 112, 127, 128, 129, 700, 2047, 2048, 2049, 16_384, 16_385,
];

test("digests of every length, whole and in parts, one after the other", () => {
  for (const hash of HASHES)
    for (const size of SIZES) {
      const data = randomBytes(size);
      const expected = createHash(hash).update(data).digest();
      assert.deepEqual(digest(hash, [data]), expected, `${hash} of ${size}`);
      const cut = Math.floor(size / 3);
      assert.deepEqual(digest(hash, [data.subarray(0, cut), data.subarray(cut)]), expected);
    }
});

test("HMACs of keys and data of every length", () => {
  for (const hash of HASHES)
    for (const keyBytes of [0, 1, 32, 48, 64, 65, 128, 129])
      for (const size of SIZES) {
        const [key, data] = [randomBytes(keyBytes), randomBytes(size)];
        const expected = createHmac(hash, key).update(data).digest();
        assert.deepEqual(hmac(hash, key, data), expected, `${hash}: ${size} with ${keyBytes}`);
        const cut = Math.floor(size / 2);
        assert.deepEqual(hmac(hash, key, data.subarray(0, cut), data.subarray(cut)), expected);
      }
});

test("digests that go on, asked for in between, with and without something more", () => {
  for (const hash of HASHES) {
    const [one, other] = [runningDigest(hash), runningDigest(hash)];
    const expected = createHash(hash);
    for (const size of [...SIZES, 40_000]) {
      const [piece, further] = [randomBytes(size), randomBytes(size)];
      one.add(piece);
      other.add(further);
      expected.update(piece);
      assert.deepEqual(one.digest(further), expected.copy().update(further).digest(), `${hash} and ${size}`);
      assert.deepEqual(one.digest(), expected.copy().digest(), `${hash} behind ${size}`);
    }
  }
});
