import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { TurnQueue } from "./turn-queue.ts";

test("turn queue: a portion in each turn, the urgent first, of each kind the newest first", async () => {
  const begun: string[] = [];
  const queue = new TurnQueue<string>(2, (item) => void begun.push(item));
  for (const item of ["a", "b", "c", "d", "e"]) queue.push(item, false);
  for (const item of ["X", "Y", "Z"]) queue.push(item, true);
  assert.deepEqual(begun, ["a", "b"]);
  await turn();
  assert.deepEqual(begun, ["a", "b", "Z", "Y"]);
  queue.push("f", false);
  await turn();
  assert.deepEqual(begun, ["a", "b", "Z", "Y", "X", "f"]);
  for (let at = 0; at < 3; at++) await turn();
  assert.deepEqual(begun, ["a", "b", "Z", "Y", "X", "f", "e", "d", "c"]);
});

test("turn queue: what `begin` pushes counts as well", async () => {
  const begun: number[] = [];
  const queue = new TurnQueue<number>(2, (item) => {
    begun.push(item);
    if (item < 5) queue.push(item + 1, true);
  });
  queue.push(1, false);
  assert.deepEqual(begun, [1, 2]);
  for (let at = 0; at < 3; at++) await turn();
  assert.deepEqual(begun, [1, 2, 3, 4, 5]);
});
