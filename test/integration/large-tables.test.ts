/** Tables and values of a size that takes too long for the tests beside the code. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Slices } from "#core/slices.ts";
import { pack, unpack } from "#documents/packed.ts";
import { LearnedBook } from "#kernel-direct/learned-book.ts";
import { ip } from "../support/routing.ts";
import { turnsDuring } from "../support/turns.ts";

test("a hundred thousand addresses that expire in one second", () => {
  const learned = new LearnedBook(150_000, () => assert.fail("an address made room"));
  for (let at = 0; at < 150_000; at++)
    learned.observe(
      {
        ip: ip(`9.${at >> 16}.${(at >> 8) & 255}.${at & 255}`),
        host: "a.org",
        direct: true,
        expiresAtMs: 900,
      },
      0,
    );
  learned.expire(2_000);
  assert.equal(learned.counts.records, 0);
});

test("many values are many blocks, between which the event loop turns", async () => {
  const value = Array.from({ length: 200_000 }, (_, at) => ({ name: `node ${at}`, at }));
  const packed = pack(value);
  assert.ok(packed.every(({ length }) => length < 100_000) && packed.length > 400);
  const [back, turns] = await turnsDuring(() => unpack(packed, new Slices()));
  assert.deepEqual(back, value);
  assert.ok(turns > 3, `${turns} turns`);
});
