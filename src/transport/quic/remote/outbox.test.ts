import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Acknowledged, FromThread } from "./messages.ts";
import { Outbox } from "./outbox.ts";

const DATA = { op: "data", client: 1, stream: 0 } as const;

function openOutbox(sent: FromThread[][]): Outbox<FromThread> {
  const port = { postMessage: (messages: unknown) => void sent.push(messages as FromThread[]) };
  return new Outbox<FromThread>(port, (read: Acknowledged) => ({ op: "read", ...read }));
}

test("messages of one turn go as one, and what was not read is known until the other side says so", async () => {
  const sent: FromThread[][] = [];
  const here = openOutbox(sent);
  const answers: FromThread[][] = [];
  const there = openOutbox(answers);
  let changes = 0;
  here.onChange = () => void changes++;
  for (let count = 0; count < 300; count++) {
    const bytes = new Uint8Array(100);
    here.put({ ...DATA, bytes }, bytes.buffer);
  }
  await nextTurn();
  assert.deepEqual([sent.length, sent[0]?.length, changes], [1, 300, 1]);
  assert.deepEqual([here.unreadMessages, here.unreadBytes], [300, 30_000]);
  there.onRead(sent[0] ?? []);
  await nextTurn();
  assert.deepEqual(answers, [[{ op: "read", messages: 300, bytes: 30_000 }]]);
  here.onAcknowledged({ messages: 300, bytes: 30_000 });
  assert.deepEqual([here.unreadMessages, here.unreadBytes, changes], [0, 0, 2]);
});

test("an acknowledgement is not acknowledged, and few messages are not at once", async () => {
  const answers: FromThread[][] = [];
  const there = openOutbox(answers);
  const read: FromThread = { op: "read", messages: 1000, bytes: 0 };
  there.onRead(Array.from({ length: 1000 }, () => read));
  there.onRead([{ ...DATA, bytes: new Uint8Array(10) }]);
  await nextTurn();
  assert.deepEqual(answers, []);
  there.onRead([{ ...DATA, bytes: new Uint8Array(64 * 1024) }]);
  await nextTurn();
  assert.deepEqual(answers, [[{ op: "read", messages: 2, bytes: 64 * 1024 + 10 }]]);
});
