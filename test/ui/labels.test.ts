import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedUser } from "#ui/api/admin-types.ts";
import { hasLabel, labelCounts, labelsIn, labelsText, withLabel } from "#ui/state/labels.ts";
import { managedUser } from "../support/managed-user.ts";

const user = (...labels: readonly string[]): ManagedUser =>
  managedUser("a", labels.length === 0 ? {} : { labels });

test("labels are written with commas of every script", () => {
  assert.deepEqual(labelsIn(" family, پرداخت،已付费，, "), ["family", "پرداخت", "已付费"]);
  assert.deepEqual(labelsIn(labelsText(["a", "b c"])), ["a", "b c"]);
  assert.deepEqual([labelsIn(""), labelsText()], [[], ""]);
});

test("a label in another case is the same label: counted once, given once, taken in every case", () => {
  assert.deepEqual(labelCounts([user("Paid", "x"), user("paid"), user()]), [
    ["Paid", 2],
    ["x", 1],
  ]);
  assert.deepEqual([hasLabel(user("Paid"), "PAID"), hasLabel(user(), "paid")], [true, false]);
  assert.deepEqual(withLabel(user("Paid"), "paid", true), ["Paid"]);
  assert.deepEqual(withLabel(user(), " paid ", true), ["paid"]);
  assert.deepEqual(withLabel(user("Paid", "x"), "paid ", false), ["x"]);
});
