import assert from "node:assert/strict";
import { test } from "node:test";
import { FragmentJoiner } from "./fragment-joiner.ts";
import { FragmentRoom } from "./fragment-room.ts";

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

test("flows of a connection share what is kept: the datagrams that began first are dropped", () => {
  const room = new FragmentRoom();
  const joiners = Array.from({ length: 1000 }, () => new FragmentJoiner(65_535, room));
  const half = Buffer.alloc(30_000, "x");
  for (const joiner of joiners) assert.equal(joiner.add(1, 0, 2, half), null);
  const whole = joiners.toReversed().filter((joiner) => joiner.add(1, 1, 2, half) !== null);
  assert.ok(whole.length > 60 && whole.length < 150, `${whole.length} datagrams were kept`);
  assert.ok(whole.includes(joiners.at(-1) as FragmentJoiner));
  const single = new FragmentJoiner(65_535, room);
  for (let packet = 0; packet < 1000; packet++)
    for (const fragment of [0, 1])
      assert.equal(single.add(packet, fragment, 2, half)?.length, fragment === 0 ? undefined : 60_000);
});
