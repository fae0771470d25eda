import assert from "node:assert/strict";
import { test } from "node:test";
import { nextOrder, sorted, timeKey, type SortKey } from "#ui/state/sorted.ts";

interface Row {
  readonly name: string;
  readonly hits: number | null;
}
const KEYS: readonly (SortKey<Row> | null)[] = [({ name }) => name, ({ hits }) => hits, null];
const ROWS: readonly Row[] = [
  { name: "b", hits: 2 },
  { name: "a10", hits: null },
  { name: "a9", hits: 1 },
  { name: "c", hits: 2 },
];
const names = (by: number, isDown: boolean) => sorted(ROWS, KEYS, { by, isDown }).map(({ name }) => name);

test("texts go by their numbers, what is alike stays, and what has nothing comes last either way", () => {
  assert.deepEqual(names(0, false), ["a9", "a10", "b", "c"]);
  assert.deepEqual(names(0, true), ["c", "b", "a10", "a9"]);
  assert.deepEqual(names(1, false), ["a9", "b", "c", "a10"]);
  assert.deepEqual(names(1, true), ["b", "c", "a9", "a10"]);
  assert.equal(sorted(ROWS, KEYS, { by: 2, isDown: false }), ROWS);
  assert.equal(sorted(ROWS, KEYS, null), ROWS);
});

test("a press goes up, down, and back to the list as it is; another column begins anew", () => {
  const up = nextOrder(null, 1);
  assert.deepEqual(up, { by: 1, isDown: false });
  assert.deepEqual(nextOrder(up, 1), { by: 1, isDown: true });
  assert.equal(nextOrder({ by: 1, isDown: true }, 1), null);
  assert.deepEqual(nextOrder(up, 2), { by: 2, isDown: false });
});

test("a time that never was has no place among times", () => {
  assert.equal(timeKey("0001-01-01T00:00:00Z"), null);
  assert.equal(timeKey("1970-01-01T00:00:00Z"), null);
  assert.equal(timeKey(undefined), null);
  assert.equal(timeKey("2026-01-01T00:00:00Z"), Date.UTC(2026, 0, 1));
});
