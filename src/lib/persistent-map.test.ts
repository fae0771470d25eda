import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PersistentMap } from "./persistent-map.ts";

const byValue = (one: number, other: number): number => one - other;
const change = fc.tuple(fc.string({ maxLength: 2 }), fc.option(fc.integer()));

test("it holds what a Map would hold after the same changes, and the maps before it stay as they were", () => {
  fc.assert(
    fc.property(fc.array(fc.array(change)), (rounds) => {
      let map = PersistentMap.from<number>([]);
      const plain = new Map<string, number>();
      const kept: [PersistentMap<number>, Map<string, number>][] = [];
      for (const changes of rounds) {
        kept.push([map, new Map(plain)]);
        map = map.with(changes);
        for (const [key, value] of changes)
          if (value === null) plain.delete(key);
          else plain.set(key, value);
      }
      for (const [one, wanted] of [...kept, [map, plain] as const]) {
        assert.deepEqual(new Map(one), wanted);
        assert.equal(one.size, wanted.size);
        assert.deepEqual(new Set(one.keys()), new Set(wanted.keys()));
        assert.deepEqual([...one.values()].sort(byValue), [...wanted.values()].sort(byValue));
        for (const key of ["", "a", ...wanted.keys()]) {
          assert.equal(one.get(key), wanted.get(key));
          assert.equal(one.has(key), wanted.has(key));
        }
      }
    }),
  );
});

test("a map of its own kind is taken as it is", () => {
  const map = PersistentMap.from([["a", 1]]);
  assert.equal(PersistentMap.from(map), map);
});
