import assert from "node:assert/strict";
import { closeSync, fstatSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { test } from "node:test";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import { takeSocket } from "./held-socket.ts";
import type { RelayThread } from "./relay-thread.ts";
import { FRONT, newTableMemory, SharedTable } from "./shared-table.ts";

const calls = openAcceptCalls();
const skip = calls === null && "needs the relay's calls";

test("a descriptor that the runtime does not take is closed, and its client is over", { skip }, () => {
  assert.ok(calls !== null);
  const table = new SharedTable(newTableMemory());
  const said: number[] = [];
  const thread = {
    table,
    forget: (slot: number) => void said.push(slot),
    command: (slot: number) => said.push(slot),
  } as unknown as RelayThread;
  const own = openSync(devNull, "r"); // no socket
  table.descriptors[FRONT * 2] = own;
  const next = openSync(devNull, "r");
  closeSync(next);
  try {
    const socket = takeSocket(thread, FRONT, 0, calls);
    assert.equal(socket.destroyed, true);
    assert.deepEqual(said, [FRONT, FRONT]);
    // What the thread has is its own; the second descriptor, which was the lowest free number, is closed again.
    assert.doesNotThrow(() => fstatSync(own));
    assert.throws(() => fstatSync(next), { code: "EBADF" });
  } finally {
    closeSync(own);
  }
});
