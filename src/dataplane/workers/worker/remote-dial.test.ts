import assert from "node:assert/strict";
import { test } from "node:test";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import { newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { FAULT, HANGUP, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { RemoteDial } from "./remote-dial.ts";

const ECONNREFUSED = -111;
const EINPROGRESS = -115;
/** As the kernel says it of a socket that its peer has reset. */
const RESET = READABLE | WRITABLE | FAULT | HANGUP;
const SLOT = 1;

function redial(takeError: () => number): RemoteDial {
  const calls = {
    address: new Uint8Array(28),
    open: () => 7,
    noDelay: () => 0,
    connect: () => EINPROGRESS,
    takeError,
  };
  const owner = { calls, host: {}, table: new RelayMemory(newRelayMemory()) } as unknown as PendingOwner;
  const dial = { address: new Uint8Array(16), mark: 0, idleSeconds: 0, device: new Uint8Array() };
  const under = { tls: null, upgrade: null };
  const options = { isDecided: true, under, mayAdopt: false };
  const remote = new RemoteDial(owner, SLOT, dial as unknown as Dial, options);
  assert.equal(remote.start(), 0);
  return remote;
}

test("a dial in place of a session is not connected by what the kernel had still to say of that one's socket", () => {
  const remote = redial(() => 0);
  assert.equal(remote.takeResult(), null);
  remote.events |= RESET; // of the same batch as the write that failed
  assert.equal(remote.takeResult(), null);
  remote.events |= WRITABLE;
  assert.equal(remote.takeResult(), 0);
});

test("a dial in place of a session fails by its own socket's error", () => {
  const remote = redial(() => ECONNREFUSED);
  remote.events |= RESET;
  assert.equal(remote.takeResult(), ECONNREFUSED);
});
