import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isSame, merge, type Json } from "#ui/state/merge.ts";

const NOTHING = new Set<never>();

test("what one side changed is taken, what both changed is a conflict that the user decides", () => {
  const before = { name: "a", enabled: true, quota: { total: 1, window: "1d" }, gone: 1 };
  const mine = { name: "mine", enabled: false, quota: { total: 2, window: "1d" }, gone: 1 };
  const theirs = { name: "theirs", enabled: true, quota: { total: 1, window: "7d" }, added: [1] };
  const { taken, conflicts, resolve } = merge(before, mine, theirs);
  assert.deepEqual(
    taken.map(({ path, theirs: now }) => [path.join("."), now]),
    [
      ["quota.window", "7d"],
      ["gone", undefined],
      ["added", [1]],
    ],
  );
  assert.deepEqual(
    conflicts.map(({ path }) => path),
    [["name"]],
  );
  const rest = { enabled: false, quota: { total: 2, window: "7d" }, added: [1] };
  assert.deepEqual(resolve(NOTHING), { name: "mine", ...rest });
  assert.deepEqual(resolve(new Set(conflicts)), { name: "theirs", ...rest });
});

test("one deletes what the other changed: a conflict as a whole", () => {
  const before = { phone: { rate: 1 } };
  const { conflicts, resolve } = merge(before, {}, { phone: { rate: 2 } });
  assert.equal(conflicts.length, 1);
  assert.deepEqual(resolve(NOTHING), {});
  assert.deepEqual(resolve(new Set(conflicts)), { phone: { rate: 2 } });
});

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
const map = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.oneof(json, fc.constantFrom(1, 2, "x")));

test("no change is lost when only one side made any; equal changes are no conflict", () => {
  fc.assert(
    fc.property(map, map, (before, after) => {
      const same = (value: Json, expected: Json) => assert.ok(isSame(value, expected));
      same(merge(before, after, before).resolve(NOTHING), after);
      same(merge(before, before, after).resolve(NOTHING), after);
      const both = merge(before, after, after);
      assert.deepEqual([both.taken, both.conflicts], [[], []]);
    }),
  );
});

test("all theirs chosen: nothing of mine is left where both changed", () => {
  fc.assert(
    fc.property(map, map, map, (before, mine, theirs) => {
      const { conflicts, resolve } = merge(before, mine, theirs);
      const again = merge(before, resolve(new Set(conflicts)), theirs);
      assert.deepEqual(again.conflicts, []);
    }),
  );
});
