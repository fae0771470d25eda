import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFrom } from "../../test/support/random.ts";
import { runs } from "../../test/support/runs.ts";
import { NumberedNames } from "./numbered-names.ts";

function openPair() {
  const names = new NumberedNames();
  return { names, seen: new NumberedNames(names.memory) };
}

test("another view of the memory finds the name of a number, until it has another one or none", () => {
  const { names, seen } = openPair();
  for (const number of [0, 4, 65_535, 2 ** 32 + 4, 2 ** 39]) {
    assert.equal(seen.find(number), null);
    names.put(number, `n${number}.test`);
    assert.equal(seen.find(number), `n${number}.test`);
    names.put(number, "b.test");
    assert.equal(seen.find(number), "b.test");
    names.remove(number);
    assert.equal(seen.find(number), null);
  }
});

test("numbers of one place are never taken for each other", () => {
  const { names, seen } = openPair();
  const others = [7, 7 + (1 << 14), 7 + 2 ** 32];
  for (const number of others) {
    names.put(number, `${number}.test`);
    for (const other of others) assert.equal(seen.find(other), other === number ? `${other}.test` : null);
  }
  names.remove(7); // its place is another's
  assert.equal(seen.find(7 + 2 ** 32), `${7 + 2 ** 32}.test`);
});

test("a name that is long or not ASCII is none, and what the number had before is gone", () => {
  const { names, seen } = openPair();
  for (const name of ["a".repeat(128), "ü.test"]) {
    names.put(5, "a.test");
    names.put(5, name);
    assert.equal(seen.find(5), null);
  }
  names.put(5, "a".repeat(127));
  assert.equal(seen.find(5), "a".repeat(127));
  names.clear();
  assert.equal(seen.find(5), null);
});

test("whatever is put and removed: what is found is what was put last", () => {
  const { names, seen } = openPair();
  const below = randomFrom(3);
  const known = new Map<number, string>();
  for (let step = 0; step < runs(20_000, 2_000); step++) {
    const number = below(64) + (below(3) << 14);
    if (below(3) === 0) {
      names.remove(number);
      known.delete(number);
    } else {
      const name = `${below(1_000)}.test`;
      names.put(number, name);
      known.set(number, name);
    }
    const asked = below(64) + (below(3) << 14);
    const found = seen.find(asked);
    if (found !== null) assert.equal(found, known.get(asked));
    assert.equal(seen.find(number), known.get(number) ?? null);
  }
});
