import assert from "node:assert/strict";
import { closeSync, fstatSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { test } from "node:test";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import { socketOfSlot } from "./slot-socket.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import { FIRST_ACCEPTED_SLOT, newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";

const calls = openAcceptCalls();
const skip = calls === null && "needs the relay's calls";

test("a descriptor that the runtime does not take is closed, and its client is over", { skip }, () => {
  assert.ok(calls !== null);
  const table = new RelayMemory(newRelayMemory());
  const said: number[] = [];
  const thread = {
    table,
    untrack: (slot: number) => void said.push(slot),
    command: (slot: number) => said.push(slot),
  } as unknown as WorkerHandle;
  const own = openSync(devNull, "r"); // no socket
  table.descriptors[FIRST_ACCEPTED_SLOT * 2] = own;
  const next = openSync(devNull, "r");
  closeSync(next);
  try {
    const socket = socketOfSlot(thread, FIRST_ACCEPTED_SLOT, 0, calls);
    assert.equal(socket.destroyed, true);
    assert.deepEqual(said, [FIRST_ACCEPTED_SLOT, FIRST_ACCEPTED_SLOT]);
    // What the thread has is its own; the second descriptor, which was the lowest free number, is closed again.
    assert.doesNotThrow(() => fstatSync(own));
    assert.throws(() => fstatSync(next), { code: "EBADF" });
  } finally {
    closeSync(own);
  }
});
