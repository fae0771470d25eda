import assert from "node:assert/strict";
import { test } from "node:test";
import { growthOf, MemorySamples, shownGrowth, type MemorySample } from "./memory-samples.ts";
import { until } from "./until.ts";

/** A round of ten seconds after the other, from 5 s on. */
function run(minutes: number, of: (minute: number) => Omit<MemorySample, "atMs">): MemorySample[] {
  return Array.from({ length: minutes * 6 + 1 }, (_, round) => ({
    atMs: 5_000 + round * 10_000,
    ...of(round / 6),
  }));
}

test("what grows all the time is told from what grows in the first ten minutes", () => {
  const growth = growthOf(
    run(60, (minute) => ({
      loadMiB: 200 + 10 * Math.min(minute, 10),
      restMiB: 100 + minute,
      heapMiB: 20,
    })),
    5_000,
  );
  assert.deepEqual(growth, {
    early: { loadMiB: 300, restMiB: 110, heapMiB: 20 },
    late: { loadMiB: 300, restMiB: 150, heapMiB: 20 },
  });
  const wanted =
    "second and last ten minutes: resident under load 300 → 300 MiB (× 1.000), at rest 110 → 150 MiB (× 1.364), in the heap 20 → 20 MiB (× 1.000)";
  assert.equal(shownGrowth(growth), wanted);
});

test("rounds in which more was in use than in others are no growth", () => {
  const many = (minute: number): boolean => minute >= 20 && minute % 1 > 0.2;
  const growth = growthOf(
    run(30, (minute) => ({ loadMiB: 250, restMiB: many(minute) ? 200 : 180, heapMiB: 20 })),
    5_000,
  );
  assert.equal(growth?.late.restMiB, 180);
});

test("a run of less than thirty minutes has no second and last ten", () => {
  assert.equal(
    growthOf(
      run(29, () => ({ loadMiB: 250, restMiB: 180, heapMiB: 20 })),
      5_000,
    ),
    null,
  );
  assert.equal(growthOf([], 5_000), null);
});

const PIECE_BYTES = 20_000;
const PIECES = 3_200;
const ALL_MIB = (PIECE_BYTES * PIECES) / 2 ** 20;

/** As reads of sockets lie about, with something in each. */
const fill = (): Buffer[] => Array.from({ length: PIECES }, (_, at) => Buffer.alloc(PIECE_BYTES, at + 1));

test("memory that is held is at rest, and what waits for a collection is not", async (context) => {
  if (process.platform !== "linux") return context.skip("SKIP resident memory: the C library of Linux");
  const memory = new MemorySamples();
  fill(); // code that runs for the first time stays
  const { restMiB: before } = await memory.take();
  const held = fill();
  const during = await memory.take();
  assert.ok(during.restMiB - before > ALL_MIB * 0.8, `${before} → ${during.restMiB} MiB`);
  assert.equal(held.length, PIECES);
  held.length = 0;
  let after = await memory.take();
  assert.ok(after.loadMiB - before > ALL_MIB * 0.8, `${before} → ${after.loadMiB} MiB`);
  await until(
    () => `${before} → ${after.restMiB} MiB`,
    async () => {
      after = await memory.take();
      return after.restMiB - before < ALL_MIB * 0.2;
    },
  );
});
