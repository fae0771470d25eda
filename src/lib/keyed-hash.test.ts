import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedHash } from "./keyed-hash.ts";

const bytes = (length: number) => Uint8Array.from({ length }, (_, index) => index);

test("the first vectors of the reference implementation", () => {
  const hash = new KeyedHash(bytes(8));
  const found = [0, 1, 2].map((length) => {
    const out = Buffer.alloc(4);
    out.writeUInt32LE(hash.of(bytes(length), 0, length));
    return out.toString("hex");
  });
  assert.deepEqual(found, ["a9359f5b", "27475ab8", "fa62a603"]);
});

test("it depends on the key, on every byte, and on nothing else", () => {
  const [one, other] = [new KeyedHash(bytes(8)), new KeyedHash(new Uint8Array(8))];
  const id = bytes(20);
  assert.notEqual(one.of(id, 0, 20), other.of(id, 0, 20));
  assert.equal(one.of(id, 4, 8), one.of(id.slice(4, 12), 0, 8));
  for (let at = 0; at < 20; at++) assert.notEqual(one.of(id.with(at, 99), 0, 20), one.of(id, 0, 20));
});
