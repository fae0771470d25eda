import assert from "node:assert/strict";
import { test } from "node:test";
import { UserCounters, NO_TRAFFIC } from "./counters.ts";
import { RecentUsage, STEP_SECONDS } from "./recent-usage.ts";

const AT_MS = 1_800_000_000_000; // a step begins here
const minutes = (count: number) => AT_MS + count * 60_000;

test("bytes stand in the five minutes in which they were moved; silent ones are left out", () => {
  const usage = new RecentUsage();
  assert.deepEqual(usage.shown(AT_MS), []);
  usage.count("upload", 10, minutes(0));
  usage.count("download", 20, minutes(4));
  usage.count("download", 5, minutes(11));
  const at = AT_MS / 1000;
  assert.deepEqual(usage.shown(minutes(12)), [
    { startSeconds: at, uploadBytes: 10, downloadBytes: 20 },
    { startSeconds: at + 2 * STEP_SECONDS, uploadBytes: 0, downloadBytes: 5 },
  ]);
});

test("what never went out is taken back, a step that has none of it keeps nothing below zero", () => {
  const usage = new RecentUsage();
  usage.count("upload", 10, minutes(0));
  usage.count("upload", -4, minutes(1));
  usage.count("upload", -6, minutes(6));
  usage.count("upload", 1, minutes(7));
  usage.count("upload", -100, minutes(8));
  assert.deepEqual(
    usage.shown(minutes(9)).map(({ uploadBytes }) => uploadBytes),
    [6, 0],
  );
});

test("a day is kept, and a clock that is set back makes no second step", () => {
  const usage = new RecentUsage();
  for (let step = 0; step < 400; step++) usage.count("download", 1, minutes(step * 5));
  assert.equal(usage.shown(minutes(399 * 5)).length, 288);
  usage.count("download", 7, minutes(0));
  const shown = usage.shown(minutes(399 * 5));
  assert.deepEqual([shown.length, shown.at(-1)?.downloadBytes], [288, 8]);
  assert.equal(usage.shown(minutes(399 * 5 + 24 * 60)).length, 0, "old ones are not shown");
});

test("counters that are set back keep what was moved lately", () => {
  const counters = new UserCounters();
  const none = { ...NO_TRAFFIC, allowance: null };
  counters.set("edge", "1", none, AT_MS);
  counters.get("edge", "1")?.count("upload", 5, AT_MS);
  counters.set("edge", "1", none, AT_MS);
  const counter = counters.get("edge", "1");
  assert.deepEqual([counter?.uploadBytes, counter?.recent.shown(AT_MS).length], [0, 1]);
});
