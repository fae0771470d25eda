import assert from "node:assert/strict";
import { test } from "node:test";
import { Slices } from "./slices.ts";

/** Milliseconds that one step takes of the thread. */
const STEP_MS = 3;
const STEPS = 12;

/** Turns of the event loop while works run. */
async function turnsDuring(works: readonly Promise<void>[]): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(works);
  isOver = true;
  return turns;
}

async function work(slices: Slices, onStep: () => void = () => {}): Promise<void> {
  for (let step = 0; step < STEPS; step++) {
    await slices.pause();
    const end = performance.now() + STEP_MS;
    while (performance.now() < end);
    onStep();
  }
}

test("works that share slices leave the event loop a turn after each", async () => {
  const slices = new Slices();
  // A slice of 4 ms ends within its second step, so that at least each third has a turn of its own.
  const turns = await turnsDuring([work(slices), work(slices), work(slices)]);
  assert.ok(turns >= (3 * STEPS) / 4, `${turns} turns in ${3 * STEPS} steps`);
});

test("short work takes no turn", async () => {
  let turned = false;
  setImmediate(() => (turned = true));
  await new Slices().pause();
  assert.equal(turned, false);
});
