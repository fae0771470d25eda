import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { TLS, VMESS } from "#dataplane/workers/shared/wire-spec.ts";
import { freeOrphans } from "./orphans.ts";
import { WireMessages } from "./wire-messages.ts";

test("what an ended worker leaves of a wire and of the sealed layer over it is freed, once", () => {
  const table = new RelayMemory(newRelayMemory());
  const { port1, port2 } = new MessageChannel();
  const messages = new WireMessages(table, port1);
  const layer = { kind: "sealed", form: "vmess", numbers: [11, 12, 0, 14, 1], unread: null } as const;
  messages.describe(6, { kind: TLS, numbers: [77], unread: null, layers: [layer] });
  const freed: (readonly [number, readonly number[]])[] = [];
  const free = (kind: number, numbers: Float64Array): void =>
    void freed.push([kind, Array.from(numbers.subarray(0, 4))]);
  freeOrphans(table, 3, free);
  assert.deepEqual(freed.splice(0), [
    [TLS, [77, 0, 0, 0]],
    [VMESS, [11, 12, 0, 14]],
  ]);
  freeOrphans(table, 3, free);
  assert.deepEqual(freed, []);
  messages.close();
  port2.close();
});
