import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { ApiError, tooManyChanges } from "#core/errors.ts";
import { KeyedQueue } from "./keyed-queue.ts";

test("in a lane one after the other, whatever becomes of it; lanes go on beside each other", async () => {
  const queues = new KeyedQueue(tooManyChanges);
  const done: string[] = [];
  const work = (name: string) => async () => {
    await nextTurn();
    done.push(name);
    return name;
  };
  const failing = assert.rejects(
    queues.on("a", () => {
      throw new Error("no");
    }),
    /no/,
  );
  const all = [queues.on("a", work("a1")), queues.on("a", work("a2")), queues.on("b", work("b1"))];
  assert.deepEqual(await Promise.all(all), ["a1", "a2", "b1"]);
  await failing;
  assert.ok(done.indexOf("b1") < done.indexOf("a2"));
  assert.ok(done.indexOf("a1") < done.indexOf("a2"));
});

test("alone: after all that was under way, before all that comes later, and that in a later turn", async () => {
  const queues = new KeyedQueue(tooManyChanges);
  const order: string[] = [];
  const note = (name: string) => () => void order.push(name);
  const first = queues.on("a", async () => {
    await nextTurn();
    order.push("first");
  });
  const alone = queues.exclusive(async () => {
    await nextTurn();
    order.push("alone");
  });
  const later = [queues.on("a", note("later a")), queues.on("b", note("later b"))];
  const second = queues.exclusive(note("alone again"));
  await alone;
  for (let jobs = 0; jobs < 50; jobs++) await Promise.resolve();
  assert.deepEqual(order, ["first", "alone"], "the rest of the turn is the caller's");
  await Promise.all([first, ...later, second]);
  assert.deepEqual(order, ["first", "alone", "later a", "later b", "alone again"]);
  await assert.rejects(
    queues.exclusive(() => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(await queues.on("a", () => "goes on"), "goes on");
});

test("the 1,025th that waits in a lane is refused, and others are not", async () => {
  const queues = new KeyedQueue(tooManyChanges);
  const held = Promise.withResolvers<void>();
  const waiting = Array.from({ length: 1024 }, () => queues.on("a", () => held.promise));
  await assert.rejects(
    queues.on("a", () => 1),
    (error: unknown) => error instanceof ApiError && error.status === 503,
  );
  assert.equal(await queues.on("b", () => 2), 2);
  held.resolve();
  await Promise.all(waiting);
  assert.equal(await queues.on("a", () => 3), 3);
});
