/** Runs of datagrams that the kernel cuts and joins: whatever goes as one message arrives as what it was. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Ip } from "#core/session.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";
import { isChild, runAsChild } from "../support/as-child.ts";
import { openNetns, skipNetns } from "../support/netns.ts";
import { until } from "../support/until.ts";
import { boundDatagrams } from "../support/bound-datagrams.ts";

const HOST = "127.0.0.1" as Ip;
const RUNS = { cut: true, whole: false };

const BURST_BYTES = 4 << 20;

/** Its number and its length in every byte that has room, so that one cut elsewhere is seen. */
function datagram(number: number, length: number): Buffer {
  const bytes = Buffer.alloc(length, number & 0xff);
  if (length >= 8) {
    bytes.writeUInt32BE(number);
    bytes.writeUInt32BE(length, 4);
  }
  return bytes;
}

interface Sent {
  readonly to: number;
  readonly length: number;
}

/** In one turn of the event loop, from one socket to several; what each of them received is compared with what was sent. */
async function exchange(sending: boolean, receiving: boolean, sent: readonly Sent[]): Promise<void> {
  const received: Buffer[][] = [[], [], []];
  const sockets = new DatagramSockets(() => openBatchedDatagrams(receiving));
  const receivers = await Promise.all(
    received.map((of) =>
      boundDatagrams(sockets, HOST, (payload) => of.push(Buffer.from(payload)), BURST_BYTES),
    ),
  );
  const sender = await boundDatagrams(
    new DatagramSockets(() => openBatchedDatagrams(sending)),
    HOST,
    () => {},
    BURST_BYTES,
  );
  const wanted: Buffer[][] = [[], [], []];
  for (const [number, { to, length }] of sent.entries()) {
    const bytes = datagram(number, length);
    wanted[to]?.push(Buffer.from(bytes));
    sender.send(bytes.subarray(0, length >> 1), bytes.subarray(length >> 1), HOST, receivers[to]?.port ?? 0);
    bytes.fill(0xee); // it was lent
  }
  await until("all are received", () => received.flat().length >= sent.length, { everyMs: 1 });
  assert.deepEqual(received, wanted);
  for (const socket of [sender, ...receivers]) socket.close();
}

/** The same of runs that are given as one piece, each to one peer. */
async function exchangeRuns(
  batches: boolean,
  runs: readonly (readonly [size: number, bytes: number])[],
): Promise<void> {
  const heard: Buffer[] = [];
  const receiver = await boundDatagrams(
    new DatagramSockets(() => openBatchedDatagrams()),
    HOST,
    (payload) => heard.push(Buffer.from(payload)),
    BURST_BYTES,
  );
  const open = batches ? () => openBatchedDatagrams() : () => null;
  const sender = await boundDatagrams(new DatagramSockets(open), HOST, () => {}, BURST_BYTES);
  const wanted: Buffer[] = [];
  for (const [number, [size, bytes]] of runs.entries()) {
    const all = datagram(number, bytes);
    for (let at = 0; at < bytes; at += size) wanted.push(Buffer.from(all.subarray(at, at + size)));
    sender.sendRun(all, size, HOST, receiver.port);
    all.fill(0xee); // it was lent
  }
  await until("all are heard", () => heard.length >= wanted.length, { everyMs: 1 });
  assert.deepEqual(heard, wanted);
  for (const socket of [sender, receiver]) socket.close();
}

if (!(await isChild({ short }))) {
  for (const batches of [true, false])
    test(`runs that are given as one, ${batches ? "in batches" : "one at a time"}`, async () => {
      await exchangeRuns(batches, [
        [1200, 1200],
        [1200, 36_000],
        [1200, 36_001],
        [1400, 1399],
        [1400, 45_000],
        [9, 1000],
      ]);
    });
  for (const [sends, sending] of Object.entries(RUNS))
    for (const [receives, receiving] of Object.entries(RUNS)) {
      test(`sent ${sends}, received ${receives}: every length, in order, a peer at a time and mixed`, async () => {
        const of = (to: number, ...lengths: readonly number[]) => lengths.map((length) => ({ to, length }));
        const same = (to: number, count: number, length: number) => of(to, ...Array(count).fill(length));
        await exchange(sending, receiving, same(0, 300, 1_200));
        await exchange(sending, receiving, [...same(0, 70, 9), ...same(0, 70, 10), ...same(0, 70, 9)]);
        await exchange(sending, receiving, of(0, 0, 0, 5, 5, 0, 5, 5, 3, 3, 4, 4, 4, 1, 65_507, 65_507, 1));
        await exchange(sending, receiving, same(1, 20, 9_000).concat(same(2, 3, 40_000)));
        const mixed = Array.from({ length: 200 }, (_, at) => ({ to: at % 3, length: 1_000 + (at % 2) }));
        await exchange(sending, receiving, mixed);
      });
      test(`sent ${sends}, received ${receives}: any sequence`, async () => {
        const length = fc.oneof(
          fc.constantFrom(0, 1, 1_200, 1_200, 1_200),
          fc.integer({ min: 0, max: 2_000 }),
        );
        const one = fc.record({ to: fc.integer({ min: 0, max: 2 }), length });
        const all = fc.asyncProperty(fc.array(one, { maxLength: 150 }), (sent) =>
          exchange(sending, receiving, sent),
        );
        await fc.assert(all, { numRuns: 20 });
      });
    }

  const skip = skipNetns("datagrams on a short path");
  test("where a path's packets are too short for a run, its datagrams go one by one", { skip }, async () => {
    await using netns = await openNetns("runs");
    await netns.ip("link set lo mtu 1500");
    await runAsChild(import.meta.url, "short", { prefix: netns.prefix });
  });
}

/** Some of them are longer than a packet of that path. */
async function short(): Promise<void> {
  const lengths = [1_200, 1_472, 1_473, 4_000, 1_473, 1_200];
  const sent = lengths.flatMap((length) => Array<Sent>(20).fill({ to: 0, length }));
  await exchange(true, true, sent);
}
