import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { skipLarge } from "../../test/support/runs.ts";
import { PassingMap } from "./passing-map.ts";

test("it holds what a Map would hold, in the same order", () => {
  const [ours, theirs] = [new PassingMap<number, string>(), new Map<number, string>()];
  let seed = 7;
  for (let step = 0; step < 5_000; step++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const key = seed % 40;
    if (seed % 3 === 0) assert.equal(ours.delete(key), theirs.delete(key));
    else {
      ours.set(key, `${step}`);
      theirs.set(key, `${step}`);
    }
    assert.equal(ours.size, theirs.size);
    assert.equal(ours.get(key), theirs.get(key));
    assert.equal(ours.has(key + 1), theirs.has(key + 1));
  }
  assert.deepEqual([...ours.keys()], [...theirs.keys()]);
  assert.deepEqual([...ours.values()], [...theirs.values()]);
  ours.clear();
  assert.deepEqual([...ours.keys()], []);
});

const walks: readonly [string, (map: PassingMap<number, number>, on: (key: number) => void) => void][] = [
  [
    "by keys",
    (map, on) => {
      for (const key of map.keys()) on(key);
    },
  ],
  ["by a visit of each", (map, on) => map.forEachKey(on)],
];

for (const [name, walk] of walks)
  test(`a walk ${name} meets no entry that was removed meanwhile, whatever else changes`, () => {
    const map = new PassingMap<number, number>();
    for (let key = 0; key < 10; key++) map.set(key, key);
    const met: number[] = [];
    walk(map, (key) => {
      met.push(key);
      if (key !== 2) return;
      for (const gone of [0, 1, 2, 4, 5, 6, 7]) map.delete(gone);
      for (let more = 10; more < 12; more++) map.set(more, more); // the first of them is put into a fresh Map
    });
    assert.deepEqual(met.slice(0, 5), [0, 1, 2, 3, 8]);
    assert.deepEqual([...map.values()], [3, 8, 9, 10, 11]);
  });

test("what has left it dies young, however old the map is", { skip: skipLarge }, () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (how?: { type: "minor" }) => void;
  const passed = (map: { set(key: number, value: object): void; delete(key: number): boolean }): number => {
    map.set(-1, {});
    collect();
    collect(); // the table is old now
    map.delete(-1);
    const before = process.memoryUsage().heapUsed;
    for (let key = 0; key < 20_000; key++) {
      map.set(
        key,
        Array.from({ length: 50 }, () => key + 0.5),
      );
      if (key >= 8) map.delete(key - 8);
      if (key % 2_000 === 0) collect({ type: "minor" });
    }
    collect({ type: "minor" });
    collect({ type: "minor" });
    return process.memoryUsage().heapUsed - before;
  };
  assert.ok(passed(new PassingMap()) < 2e6);
});
