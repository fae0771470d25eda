import assert from "node:assert/strict";
import { test } from "node:test";
import type { Destination } from "#core/session.ts";
import { WaitingDatagrams } from "./waiting-datagrams.ts";

const destination: Destination = { host: "a.example", ip: null, port: 9 };

function pushed(waiting: WaitingDatagrams, count: number, bytes: number): number {
  let kept = 0;
  for (let n = 0; n < count; n++)
    if (waiting.push({ payload: Buffer.alloc(bytes, n & 0xff), destination })) kept++;
  return kept;
}

test("one read of a socket is kept in order, copied; an emptied one takes as much again", () => {
  const waiting = new WaitingDatagrams();
  const lent = Buffer.alloc(1_200);
  for (let n = 0; n < 64; n++) {
    lent.fill(n);
    waiting.push({ payload: lent, destination });
  }
  assert.deepEqual(
    waiting.take().map(({ payload }) => payload[1_199]),
    Array.from({ length: 64 }, (_, n) => n),
  );
  assert.deepEqual(waiting.take(), []);
  assert.equal(pushed(waiting, 64, 1_200), 64);
});

test("bounds: 512 datagrams, 512 KiB", () => {
  assert.equal(pushed(new WaitingDatagrams(), 1_000, 0), 512);
  assert.equal(pushed(new WaitingDatagrams(), 1_000, 65_507), 8);
  const waiting = new WaitingDatagrams();
  pushed(waiting, 9, 65_507);
  waiting.take();
  assert.equal(pushed(waiting, 9, 65_507), 8);
});
