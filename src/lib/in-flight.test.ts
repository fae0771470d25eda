import assert from "node:assert/strict";
import { test } from "node:test";
import { PerClientLimiter } from "./in-flight.ts";

test("a client that is refused counts for nothing, and has room once it has left", () => {
  const limiter = new PerClientLimiter({ all: 8, ofOne: 2 });
  assert.deepEqual(
    [1, 2, 3].map(() => limiter.enter("a")),
    [true, true, false],
  );
  limiter.leave("a");
  assert.equal(limiter.enter("a"), true);
});

test("many clients that ask for much leave room for one without any", () => {
  const limiter = new PerClientLimiter({ all: 8, ofOne: 8 });
  for (let at = 0; at < 8; at++) assert.equal(limiter.enter(`client ${at}`), true);
  assert.equal(limiter.enter("client 0"), false);
  assert.equal(limiter.enter("new"), true);
  assert.equal(limiter.enter("newer"), true);
  assert.equal(limiter.enter("newest"), false, "a quarter beyond the bound, and no more");
});

test("what is refused never begins", async () => {
  const limiter = new PerClientLimiter({ all: 4, ofOne: 1 });
  const { promise, resolve } = Promise.withResolvers<string>();
  const first = limiter.use("a", () => promise);
  let begun = false;
  await assert.rejects(
    limiter.use("a", async () => void (begun = true)),
    /a asks too much at once/,
  );
  assert.equal(begun, false);
  resolve("answer");
  assert.equal(await first, "answer");
  assert.equal(await limiter.use("a", async () => "next"), "next");
});

test("the end of a rush is said once", () => {
  const limiter = new PerClientLimiter({ all: 8, ofOne: 8 });
  const settledAfter = (left: number): readonly boolean[] =>
    Array.from({ length: left }, () => {
      limiter.leave("a");
      return limiter.takeSettled();
    });
  for (let at = 0; at < 3; at++) limiter.enter("a");
  assert.deepEqual(settledAfter(3), [false, false, false], "less than half of the bound");
  for (let at = 0; at < 4; at++) limiter.enter("a");
  assert.deepEqual(settledAfter(4), [false, false, true, false]);
});
