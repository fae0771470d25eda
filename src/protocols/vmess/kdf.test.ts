import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { answerKey, kdf } from "./kdf.ts";

type Hash = (data: Uint8Array) => Buffer;

/** As it is defined: an HMAC whose hash is another HMAC. */
function nested(key: Uint8Array, path: readonly Uint8Array[]): Buffer {
  let hash: Hash = (data) => createHmac("sha256", "VMess AEAD KDF").update(data).digest();
  for (const element of path) {
    const inner = hash;
    const padded = (pad: number) =>
      Buffer.alloc(64, element, "latin1")
        .fill(0, element.length)
        .map((byte) => byte ^ pad);
    hash = (data) => inner(Buffer.concat([padded(0x5c), inner(Buffer.concat([padded(0x36), data]))]));
  }
  return hash(key);
}

test("keys are nested HMACs, whatever the lengths of key and path elements and however many there are", () => {
  const element = fc.uint8Array({ minLength: 1, maxLength: 64 });
  const label = fc.constantFrom("VMess Header AEAD Key", "AEAD Resp Header IV", "x".repeat(64));
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 55 }),
      label,
      fc.array(element, { maxLength: 4 }),
      (key, first, path) => {
        const wanted = nested(key, [Buffer.from(first), ...path]);
        assert.deepEqual(kdf(32, key, first, ...path), wanted);
        assert.deepEqual(kdf(12, key, first, ...path), wanted.subarray(0, 12));
      },
    ),
  );
});

test("a key that was given stays as it is when others are made", () => {
  const [first, second] = [kdf(16, Buffer.alloc(16, 1), "a"), answerKey(Buffer.alloc(16, 2))];
  const kept = [Buffer.from(first), Buffer.from(second)];
  kdf(16, Buffer.alloc(16, 3), "b", Buffer.alloc(16, 4));
  answerKey(Buffer.alloc(16, 5));
  assert.deepEqual([first, second], kept);
});

test("keys of answers are the first half of SHA-256", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (value) => {
      assert.deepEqual(answerKey(value), createHash("sha256").update(value).digest().subarray(0, 16));
    }),
  );
});
