import assert from "node:assert/strict";
import { test } from "node:test";
import { Pacer } from "./pacer.ts";

const BYTES = 1000;
/** Bytes a millisecond. */
const RATE = 500;

/** How many datagrams go at this time. */
function send(pacer: Pacer, nowMs: number): number {
  let count = 0;
  for (; pacer.waitMs(nowMs, RATE, BYTES) === 0; count++) pacer.onSent(BYTES);
  return count;
}

test("a burst is ten datagrams, and the rate is kept behind it", () => {
  const pacer = new Pacer();
  assert.equal(send(pacer, 0), 10);
  let sent = 0;
  for (let nowMs = 2; nowMs <= 200; nowMs += 2) sent += send(pacer, nowMs);
  assert.equal(sent, 100);
});

test("who is woken too late makes up for it, by one run at the most; who had nothing to send does not", () => {
  const late = new Pacer();
  send(late, 0);
  assert.equal(send(late, 62), 30, "60 ms of the rate, for the first datagram was due at 2 ms");
  assert.equal(send(late, 1000), 64);

  const idle = new Pacer();
  idle.waitMs(0, RATE, BYTES);
  idle.onSent(BYTES);
  assert.equal(send(idle, 1000), 10);
});
