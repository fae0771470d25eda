import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pipe, RelayCalls } from "#platform/linux/relay-calls.ts";
import { Pipes } from "./pipes.ts";
import { closeOrphanPipes, newPipeMemory } from "#dataplane/workers/shared/pipe-memory.ts";

/** Gives as many descriptors as there are left. */
class Kernel {
  left = 0;
  refusals = 0;
  #next = 10;

  openPipe(): Pipe | null {
    if (this.left < 2) {
      this.refusals++;
      return null;
    }
    this.left -= 2;
    return { readEnd: this.#next++, writeEnd: this.#next++ };
  }

  close(): void {
    this.left++;
  }
}

function open(limit: number) {
  const kernel = new Kernel();
  const memory = newPipeMemory(limit);
  return { kernel, memory, pipes: new Pipes(kernel as unknown as RelayCalls, memory) };
}

test("without descriptors there are no pipes, and again some once the thread was silent", () => {
  const { kernel, memory, pipes } = open(2);
  assert.equal(pipes.take(), null);
  kernel.left = 100;
  assert.equal(pipes.take(), null);
  assert.equal(kernel.refusals, 1, "it is not asked for every piece");
  pipes.closeIdle();
  const [one, other] = [pipes.take(), pipes.take()];
  assert.ok(one !== null && other !== null);
  assert.equal(pipes.take(), null, "two at most");
  pipes.closeIdle();
  assert.equal(pipes.take(), null, "both are in use");
  pipes.giveBack(one);
  pipes.discard(other);
  pipes.closeIdle();
  assert.equal(kernel.left, 100);
  pipes.take();
  closeOrphanPipes(memory, () => kernel.close());
  assert.equal(kernel.left, 100);
});
