/** The front of a thread without sockets: memory in place of the kernel. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { Front, type FrontHost, HANDSHAKES } from "./front.ts";
import { FrontTable, newFrontMemory, OPEN } from "./front-table.ts";
import { CAPACITY, FRONT, newTableMemory, SharedTable } from "./shared-table.ts";

/** What is accepted has numbers from 1 on; nobody says anything. */
function openFront(): { front: Front; slots: number[] } {
  let descriptors = 0;
  const slots: number[] = [];
  const calls = {
    address: new Uint8Array(28),
    watchListener: () => 0,
    accept: () => ++descriptors,
    localName: () => -1,
    discard() {},
  } as unknown as AcceptCalls;
  const host: FrontHost = {
    epoll: 0,
    watch: () => true,
    put: (slot, conversation) => void (conversation !== null && slots.push(slot)),
    end() {},
    report() {},
    reportAtLeisure() {},
    pair: () => null,
  };
  const shared = new FrontTable(newFrontMemory(CAPACITY));
  shared.handshakes[0] = HANDSHAKES.indexOf("mixed");
  shared.states[0] = OPEN;
  const front = new Front(calls, new SharedTable(newTableMemory()), shared, host);
  front.listen(0);
  return { front, slots };
}

test("a slot is nobody else's as long as this batch may have news of its old socket", () => {
  const { front, slots } = openFront();
  while (slots.length < 4096) front.accept(0);
  front.tick(1);
  slots.length = 0;
  front.accept(0); // the oldest are closed for them
  assert.equal(slots.length, 4);
  const before = FRONT + 4096;
  assert.ok(Math.min(...slots) >= before, "those of the oldest are not used again");
  front.tick(1);
  slots.length = 0;
  front.accept(0);
  assert.ok(Math.max(...slots) < before, "now they are");
});
