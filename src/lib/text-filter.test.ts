import assert from "node:assert/strict";
import { test } from "node:test";
import { runs } from "../../test/support/runs.ts";
import { randomFrom } from "../../test/support/random.ts";
import { TextFilter } from "./text-filter.ts";

test("what is in the set is always found, by another view of the memory too", () => {
  const below = randomFrom(7);
  const filter = new TextFilter();
  const seen = new TextFilter(filter.memory);
  const all = new Set<string>();
  for (let step = 0; step < runs(20_000, 2_000); step++) {
    const text = `10.${below(4)}.${below(4)}.${below(256)}`;
    if (all.delete(text)) filter.remove(text);
    else {
      all.add(text);
      filter.add(text);
    }
    if (step % 500 === 0) for (const one of all) assert.ok(seen.mayHave(one), one);
  }
  for (const one of all) filter.remove(one);
  assert.ok(!seen.mayHave("10.0.0.1"), "and nothing is left of it");
});

test("of what is not in it most is told apart", () => {
  const filter = new TextFilter();
  for (let at = 0; at < 4_096; at++) filter.add(`203.0.${at >> 8}.${at & 255}`);
  let taken = 0;
  for (let at = 0; at < 4_096; at++) if (filter.mayHave(`198.51.${at >> 8}.${at & 255}`)) taken++;
  assert.ok(taken < 1_400, `${taken} of 4,096`);
});

test("a counter that was full says yes from then on", () => {
  const filter = new TextFilter();
  for (let count = 0; count < 300; count++) filter.add("10.0.0.1");
  for (let count = 0; count < 300; count++) filter.remove("10.0.0.1");
  assert.ok(filter.mayHave("10.0.0.1"));
});
