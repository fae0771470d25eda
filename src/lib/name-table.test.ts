import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFrom } from "../../test/support/random.ts";
import { MOST_NAME_BYTES, NAME_VALUES, NameTable, NameTables } from "./name-table.ts";

const valuesOf = (first: number): Int32Array =>
  Int32Array.from({ length: NAME_VALUES }, (_, at) => first + at);

/** A writer and a reader, as two threads have them. */
function openPair() {
  const writer = new NameTable();
  const reader = new NameTable(writer.memory);
  const out = new Int32Array(NAME_VALUES);
  const find = (kind: number, name: string, nowMs: number): number | null =>
    reader.find(kind, name, out, nowMs) ? (out[0] ?? null) : null;
  return { writer, find, out };
}

const NOW = 1_790_000_000_000;

test("an entry is found by its kind and its name, whole, until it ends", () => {
  const { writer, find, out } = openPair();
  writer.put(2, "a.test", valuesOf(7), NOW + 1_000, NOW);
  assert.equal(find(2, "a.test", NOW), 7);
  assert.deepEqual([...out], [7, 8, 9, 10, 11, 12]);
  assert.equal(find(2, "a.test", NOW + 999), 7);
  assert.equal(find(2, "a.test", NOW + 1_000), null);
  for (const [kind, name] of [
    [3, "a.test"],
    [2, "b.test"],
    [2, "a.tes"],
    [2, "a.test."],
    [2, ""],
  ] as const)
    assert.equal(find(kind, name, NOW), null, `${kind} ${name}`);
});

test("an entry whose clock was set back is of unknown age, and not given", () => {
  const { writer, find } = openPair();
  writer.put(2, "a.test", valuesOf(7), NOW + 1_000, NOW);
  assert.equal(find(2, "a.test", NOW - 3_600_000), null);
});

test("a later one takes the place of an earlier one; one that has ended is none", () => {
  const { writer, find } = openPair();
  writer.put(2, "a.test", valuesOf(1), NOW + 1_000, NOW);
  writer.put(2, "a.test", valuesOf(2), NOW + 500, NOW);
  assert.equal(find(2, "a.test", NOW), 2);
  assert.equal(find(2, "a.test", NOW + 600), null);
  writer.put(2, "b.test", valuesOf(3), NOW, NOW);
  assert.equal(find(2, "b.test", NOW), null);
});

test("what was put before it is cleared is found no more", () => {
  const { writer, find } = openPair();
  writer.put(2, "a.test", valuesOf(1), NOW + 1_000, NOW);
  writer.clear();
  assert.equal(find(2, "a.test", NOW), null);
  writer.put(2, "a.test", valuesOf(2), NOW + 1_000, NOW);
  assert.equal(find(2, "a.test", NOW), 2);
});

test("beyond the limit nothing is given, until there is another", () => {
  const { writer, find } = openPair();
  writer.put(2, "a.test", valuesOf(7), NOW + 60_000, NOW);
  writer.limit(NOW + 5_000, 5_000);
  assert.equal(find(2, "a.test", NOW + 4_999), 7);
  assert.equal(find(2, "a.test", NOW + 5_000), null);
  writer.limit(NOW + 10_000, 5_000);
  assert.equal(find(2, "a.test", NOW + 5_000), 7);
  assert.equal(find(2, "a.test", NOW + 4_999), null, "the clock was set back");
});

test("a table that is given back is empty for its next user", () => {
  const tables = new NameTables();
  const first = tables.take();
  first.put(2, "a.test", valuesOf(7), NOW + 60_000, NOW);
  first.limit(NOW, 5_000);
  tables.giveBack(first);
  const next = tables.take();
  assert.equal(next, first);
  assert.notEqual(tables.take(), first);
  const values = new Int32Array(NAME_VALUES);
  assert.equal(next.find(2, "a.test", values, NOW), false);
  next.put(2, "a.test", valuesOf(8), NOW + 60_000, NOW);
  assert.equal(next.find(2, "a.test", values, NOW + 1), true);
});

test("names of all lengths are kept apart; what is too long or not ASCII is left out", () => {
  const { writer, find } = openPair();
  for (let length = 1; length <= MOST_NAME_BYTES; length++)
    writer.put(2, "x".repeat(length), valuesOf(length), NOW + 1_000, NOW);
  for (let length = 1; length <= MOST_NAME_BYTES; length++)
    assert.equal(find(2, "x".repeat(length), NOW), length);
  for (const name of ["x".repeat(MOST_NAME_BYTES + 1), "b\u00fccher.test"]) {
    writer.put(2, name, valuesOf(1), NOW + 1_000, NOW);
    assert.equal(find(2, name, NOW), null);
  }
});

test("any number of names: what is found is what was put last, and the newest is found", () => {
  const { writer, find } = openPair();
  const below = randomFrom(2_311);
  const put = new Map<string, number>();
  let found = 0;
  for (let count = 0; count < 50_000; count++) {
    const name = `${below(20_000)}.test`;
    const nowMs = NOW + count;
    writer.put(2, name, valuesOf(count), nowMs + 1 + below(30_000), nowMs);
    put.set(name, count);
    assert.equal(find(2, name, nowMs), count);
    const other = `${below(20_000)}.test`;
    const value = find(2, other, nowMs);
    if (value !== null) found++;
    if (value !== null) assert.equal(value, put.get(other));
  }
  assert.ok(found > 1_000, `${found}`);
});
