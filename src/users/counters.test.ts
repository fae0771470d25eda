import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_TRAFFIC, UserCounters } from "./counters.ts";

test("what a fleet says was moved stays a number that a state file takes", () => {
  const counters = new UserCounters(false);
  counters.set("edge", "a", { ...NO_TRAFFIC, allowance: null }, 0);
  const counter = counters.get("edge", "a") ?? assert.fail("no counter");
  counter.correct(2 ** 63, -5, 0);
  assert.deepEqual([counter.uploadBytes, counter.downloadBytes], [Number.MAX_SAFE_INTEGER, 0]);
  counter.count("upload", 1000, 0);
  counter.correct(Number.MAX_SAFE_INTEGER + 1001, 7, 0);
  assert.equal(counter.uploadBytes, Number.MAX_SAFE_INTEGER);
});
