import assert from "node:assert/strict";
import { test } from "node:test";
import { thisMachine, workerCount } from "./worker-count.ts";

const MIB = 1024 * 1024;

test("a worker a core, one where there is little memory, and what the configuration says", () => {
  const counts = [
    workerCount(null, { cores: 4, memoryBytes: 8192 * MIB }),
    workerCount(null, { cores: 4, memoryBytes: 256 * MIB }),
    workerCount(null, { cores: 1, memoryBytes: 128 * MIB }),
    workerCount(3, { cores: 1, memoryBytes: 128 * MIB }),
  ];
  assert.deepEqual(
    counts.map(({ count }) => count),
    [4, 1, 1, 3],
  );
  assert.equal(counts[1]?.why, "4 cores, but 256 MiB of memory");
});

test("the machine has cores, and memory that a container may limit", () => {
  const { cores, memoryBytes } = thisMachine();
  assert.ok(cores >= 1);
  assert.ok(memoryBytes > 16 * MIB && memoryBytes < 2 ** 50);
});
