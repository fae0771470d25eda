import assert from "node:assert/strict";
import { test } from "node:test";
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { AcceptedFlows } from "./accepted-flows.ts";
import { OpenedFlows } from "./opened-flows.ts";

const ITEM: Datagram = { payload: Buffer.from("abc"), destination: toDestination("192.0.2.1", 53) };

/** A message is the id alone, in one byte. */
function openedFlows(idCount: number) {
  const said: string[] = [];
  const flows = new OpenedFlows<number>({
    protocol: "p",
    firstId: 1,
    idCount,
    decode([id]) {
      if (id === undefined) throw new ProtocolError("cut short");
      return id;
    },
    idOf: (id) => id,
    openChannel: (id) => ({
      send: () => void said.push(`send ${id}`),
      take: () => ITEM,
      dissociate: () => void said.push(`dissociate ${id}`),
    }),
    ended: () => void said.push("ended"),
  });
  return { flows, said };
}

test("opened flows: ids go round past those in use, and all are taken at some time", async () => {
  const { flows, said } = openedFlows(3);
  const opened = [flows.open(), flows.open(), flows.open()];
  assert.throws(() => flows.open(), DialError);
  await opened[1]?.[Symbol.asyncDispose]();
  flows.open().send(ITEM);
  assert.deepEqual(said, ["ended", "dissociate 2", "send 2"]);
});

test("opened flows: one that has ended sends nothing, and ends once", async () => {
  const { flows, said } = openedFlows(3);
  const [first, second] = [flows.open(), flows.open()];
  let came = 0;
  first.receive(() => came++);
  for (const bytes of [Buffer.of(1), Buffer.of(0), Buffer.of()]) flows.take(bytes);
  assert.equal(came, 1);
  await first[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  first.send(ITEM);
  flows.close();
  await second.closed;
  await second[Symbol.asyncDispose]();
  assert.deepEqual(said, ["ended", "dissociate 1", "ended"]);
  assert.ok(flows.isEmpty);
});

test("accepted flows: at the bound one more takes the place of the one that was silent the longest", async () => {
  const opened: DatagramFlow[] = [];
  const closed: number[] = [];
  const channels: number[] = [];
  const flows = new AcceptedFlows<boolean>({
    openChannel(id) {
      channels.push(id);
      return { send() {}, take: (isWhole) => (isWhole ? ITEM : null) };
    },
    onFlow(flow) {
      const id = opened.push(flow) - 1;
      void flow.closed.then(() => closed.push(id));
    },
  });
  flows.take(0, false);
  assert.deepEqual([channels, opened.length], [[0], 0], "its datagram is not whole");
  for (let id = 0; id < 1024; id++) flows.take(id, true);
  flows.take(0, true);
  assert.equal(opened.length, 1024);
  flows.take(2000, true); // in place of 1
  flows.end(2);
  flows.end(3000);
  await opened[3]?.[Symbol.asyncDispose]();
  assert.deepEqual(closed, [1, 2, 3]);
  flows.take(3, true);
  assert.equal(opened.length, 1026, "anew");
  flows.close();
  await Promise.all(opened.map((flow) => flow.closed));
  assert.equal(closed.length, 1026);
});
