import assert from "node:assert/strict";
import { test } from "node:test";
import { FragmentJoiner } from "./fragment-joiner.ts";

const bytes = (text: string) => Buffer.from(text);

test("fragments in any order, doubles, an older datagram's, and one that is too long", () => {
  const joiner = new FragmentJoiner(6);
  assert.equal(joiner.add(1, 2, 3, bytes("ef")), null);
  assert.equal(joiner.add(1, 0, 3, bytes("ab")), null);
  assert.equal(joiner.add(1, 0, 3, bytes("xx")), null, "the first one counts");
  assert.equal(String(joiner.add(1, 1, 3, bytes("cd"))), "abcdef");
  assert.equal(joiner.add(2, 0, 2, bytes("a")), null);
  assert.equal(joiner.add(3, 0, 2, bytes("b")), null, "the newest datagram alone is kept");
  assert.equal(joiner.add(2, 1, 2, bytes("c")), null);
  assert.equal(joiner.add(4, 0, 2, bytes("abcd")), null);
  assert.equal(joiner.add(4, 1, 2, bytes("efg")), null, "more than six bytes");
});

test("what is kept is a copy", () => {
  const joiner = new FragmentJoiner(6);
  const lent = bytes("ab");
  joiner.add(1, 0, 2, lent);
  lent.fill(0);
  assert.equal(String(joiner.add(1, 1, 2, bytes("cd"))), "abcd");
});
