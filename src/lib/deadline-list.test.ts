import assert from "node:assert/strict";
import { test } from "node:test";
import { type DeadlineListItem, DeadlineList } from "./deadline-list.ts";

class Guest implements DeadlineListItem<Guest> {
  line: DeadlineList<Guest> | null = null;
  before: Guest | null = null;
  behind: Guest | null = null;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

const namesIn = (line: DeadlineList<Guest>): string => {
  let names = "";
  line.forEach(({ name }) => (names += name));
  return names;
};

test("an entry leaves from any position, and the others stay in order", () => {
  const [line, other] = [new DeadlineList<Guest>(), new DeadlineList<Guest>()];
  const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => new Guest(name)) as [Guest, Guest, Guest, Guest];
  for (const one of [a, b, c, d]) line.join(one);
  assert.equal(namesIn(line), "abcd");
  other.leave(b);
  assert.equal(namesIn(line), "abcd", "it stands in another line");
  for (const [one, left] of [
    [b, "acd"],
    [a, "cd"],
    [d, "c"],
    [d, "c"],
    [c, ""],
  ] as const) {
    line.leave(one);
    assert.equal(namesIn(line), left);
    assert.equal(line.size, left.length);
    assert.equal(line.first?.name ?? "", left.slice(0, 1));
  }
  other.join(a);
  line.join(b);
  assert.equal(namesIn(other) + namesIn(line), "ab");
});

test("the reported entry may leave", () => {
  const line = new DeadlineList<Guest>();
  for (const name of ["a", "b", "c", "d"]) line.join(new Guest(name));
  line.forEach((one) => {
    if (one.name !== "c") line.leave(one);
  });
  assert.equal(namesIn(line), "c");
});
