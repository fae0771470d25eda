import assert from "node:assert/strict";
import { test } from "node:test";
import { type Delivery, DeliveryQueue, waitMsOf } from "./delivery-queue.ts";

const HOUR = 3_600_000;
let made = 0;

function delivery(subject: string, sinceMs = 0): Delivery {
  return { seq: ++made, subject, sinceMs, attempts: 0, error: "" };
}

const seqsOf = (all: readonly Delivery[]) => all.map(({ seq }) => seq);

test("of a subject one is under way at a time, in their order; subjects do not wait for one another", () => {
  const queue = new DeliveryQueue();
  const [a1, a2, b1] = [delivery("a"), delivery("a"), delivery("b")];
  for (const one of [a1, a2, b1]) queue.add(one);
  assert.deepEqual(queue.take(0), [a1, b1]);
  assert.deepEqual(queue.take(0), []);
  queue.done(a1);
  assert.deepEqual(queue.take(0), [a2]);
  queue.failed(a2, "500", 0, 0);
  assert.deepEqual([queue.take(500), queue.take(1000), queue.size], [[], [a2], 2]);
});

test("a receiver that is down is asked with one event, less and less often, and gets the rest at once when it is back", () => {
  const queue = new DeliveryQueue();
  const all = Array.from({ length: 20 }, (_, at) => delivery(`s${at}`));
  for (const one of all) queue.add(one);
  let nowMs = 0;
  let asked = 0;
  while (nowMs < HOUR) {
    const taken = queue.take(nowMs);
    asked += taken.length;
    for (const one of taken) queue.failed(one, "refused", nowMs, 0);
    nowMs = Math.max(nowMs + 1, queue.nextAtMs(nowMs) ?? Infinity);
  }
  assert.ok(asked < 40, `${asked} requests in an hour`);
  const [first] = queue.take(nowMs);
  assert.ok(first !== undefined);
  queue.done(first);
  const rest: Delivery[] = [];
  for (let taken = queue.take(nowMs); taken.length > 0; taken = queue.take(nowMs))
    for (const one of taken) {
      rest.push(one);
      queue.done(one);
    }
  assert.equal(rest.length, 19);
});

test("waits double and end at ten minutes; what the receiver asks for is waited", () => {
  assert.deepEqual([1, 2, 3, 10, 11, 99].map(waitMsOf), [1000, 2000, 4000, 512_000, 600_000, 600_000]);
  const queue = new DeliveryQueue();
  const one = delivery("a");
  queue.add(one);
  queue.take(0);
  queue.failed(one, "429", 0, 120_000);
  assert.deepEqual([queue.take(119_999), queue.take(120_000)], [[], [one]]);
});

test("after a day an event is given up, and those behind it go on", () => {
  const queue = new DeliveryQueue();
  const [old, young] = [delivery("a", 0), delivery("a", 20 * HOUR)];
  queue.add(old);
  queue.add(young);
  queue.take(0);
  assert.deepEqual(queue.failed(old, "500", 23 * HOUR, 0), []);
  queue.take(24 * HOUR);
  assert.deepEqual(queue.failed(old, "500", 24 * HOUR, 0), [old]);
  assert.deepEqual(queue.take(25 * HOUR), [young]);
});

test("too many: the oldest that is not under way is given up, and the number stays", () => {
  const queue = new DeliveryQueue();
  const given: Delivery[] = [];
  const all = Array.from({ length: 10_010 }, (_, at) => delivery(`s${at % 7}`));
  for (const one of all) given.push(...queue.add(one));
  assert.deepEqual(seqsOf(given), seqsOf(all.slice(0, 10)));
  assert.equal(queue.size, 10_000);
});
