import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { FairQueue } from "./fair-queue.ts";
import { PerClientLimiter } from "./in-flight.ts";

function queueOf(bounds: { all: number; ofOne: number }) {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  let settled = 0;
  const queue = new FairQueue<string>({
    limiter: new PerClientLimiter(bounds),
    perTurn: 2,
    work: (item) => {
      begun.push(item);
      return new Promise((resolve) => ends.push(resolve));
    },
    onSettled: () => settled++,
  });
  const ask = (client: string, item: string): boolean => {
    if (!queue.admits(client)) return false;
    queue.push(client, item);
    return true;
  };
  return { ask, begun, ends, settled: () => settled };
}

test("fair queue: a client's first item goes before the further ones of another", async () => {
  const { ask, begun } = queueOf({ all: 16, ofOne: 8 });
  for (const item of ["a1", "a2", "a3", "a4"]) ask("a", item);
  ask("b", "b1");
  assert.deepEqual(begun, ["a1", "a2"]);
  await turn();
  assert.deepEqual(begun, ["a1", "a2", "b1", "a4"]);
});

test("fair queue: what waits counts for its client, and the end of a flood is said once", async () => {
  const { ask, ends, settled } = queueOf({ all: 8, ofOne: 4 });
  assert.deepEqual(
    ["a1", "a2", "a3", "a4", "a5"].map((item) => ask("a", item)),
    [true, true, true, true, false],
  );
  for (let at = 0; at < 4; at++) {
    for (const end of ends.splice(0)) end();
    await turn();
  }
  assert.equal(settled(), 1);
  assert.equal(ask("a", "a6"), true);
});
