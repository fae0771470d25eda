import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "#core/errors.ts";
import { NO_TRAFFIC, UserCounters } from "./counters.ts";
import { MOST_DAYS, UserHistory } from "./history.ts";
import { decodeHistories, historyChange, historyOf, removedChange } from "./history-records.ts";
import { RemovedHistories } from "./removed-histories.ts";

/** Midnight in UTC. */
const AT_MS = Date.UTC(2026, 0, 10);
const at = (days: number, hours = 0) => AT_MS + (days * 24 + hours) * 3_600_000;

const rows = (steps: ReturnType<UserHistory["shown"]>["days"]) =>
  steps.map((step) => [step.startSeconds * 1000, step.uploadBytes, step.downloadBytes]);

/** As a start finds what was stored last. */
function stored(history: UserHistory): UserHistory {
  return new UserHistory(
    JSON.parse(JSON.stringify(history.closed)),
    JSON.parse(JSON.stringify(history.openHour)),
  );
}

test("bytes stand in their hour and in their day in UTC; silent ones are left out", () => {
  const history = new UserHistory();
  assert.ok(history.isEmpty);
  history.count("upload", 10, at(0, 23));
  history.count("download", 20, at(0, 23.9));
  history.count("download", 5, at(1, 0));
  history.count("upload", 1, at(3, 7));
  for (const one of [history, stored(history)]) {
    assert.deepEqual(rows(one.shown(at(3, 8), 30).days), [
      [at(0), 10, 20],
      [at(1), 0, 5],
      [at(3), 1, 0],
    ]);
    assert.deepEqual(rows(one.shown(at(3, 8), 30).hours), [[at(3, 7), 1, 0]]);
    assert.deepEqual(rows(one.shown(at(1, 23), 30).hours), [
      [at(0, 23), 10, 20],
      [at(1, 0), 0, 5],
    ]);
    assert.deepEqual(rows(one.shown(at(3, 8), 1).days), [[at(3), 1, 0]], "today alone");
    assert.deepEqual(rows(one.shown(at(3, 8), 3).days).length, 2, "today and two days before it");
  }
});

test("the row of closed hours is to be written once an hour with traffic, not with every byte", () => {
  const history = new UserHistory();
  history.count("upload", 10, at(0));
  assert.equal(history.isRowStale, false);
  history.count("upload", 10, at(0, 0.9));
  assert.equal(history.isRowStale, false);
  history.count("upload", 10, at(0, 1));
  assert.equal(history.isRowStale, true);
});

test("what never went out is taken back, from an hour that is over where this one lacks it", () => {
  const history = new UserHistory();
  history.count("upload", 10, at(0, 22));
  history.count("upload", 10, at(0, 23));
  history.count("upload", 3, at(1));
  history.isRowStale = false;
  history.count("upload", -2, at(1));
  assert.equal(history.isRowStale, false);
  history.count("upload", -6, at(1, 0.1));
  assert.equal(history.isRowStale, true);
  assert.deepEqual(rows(history.shown(at(1, 1), 30).days), [[at(0), 15, 0]]);
  history.count("upload", -100, at(1, 0.2));
  history.count("download", 4, at(1, 0.3));
  assert.deepEqual(rows(history.shown(at(1, 1), 1).days), [[at(1), 0, 4]]);
});

test("a clock that was set ahead and back loses nothing, and counts on where it was", () => {
  const history = new UserHistory();
  history.count("upload", 1, at(0));
  history.count("upload", 2, at(5_000));
  history.count("upload", 4, at(0, 0.5));
  history.count("upload", 8, at(1));
  assert.deepEqual(rows(history.shown(at(1), 30).days), [
    [at(0), 5, 0],
    [at(1), 8, 0],
  ]);
  assert.equal(rows(history.shown(at(5_000), 1).days)[0]?.[1], 2);
});

test("days and hours are bounded, and the oldest go first", () => {
  const history = new UserHistory();
  for (let hour = 0; hour < 24 * 100; hour++) history.count("download", 1, at(0, hour));
  const { days, hours } = history.shown(at(99, 23), 1_000);
  assert.deepEqual(
    days.map(({ downloadBytes }) => downloadBytes),
    Array.from({ length: MOST_DAYS }, () => 24),
  );
  assert.equal(days.at(-1)?.startSeconds, at(99) / 1000);
  assert.deepEqual([hours.length, hours[0]?.startSeconds], [48, at(98) / 1000]);
  assert.ok((historyChange("1", history).value?.length ?? Infinity) < 4_096);
});

test("counters that are set back go on with the history; of a fleet none is kept", () => {
  const none = { ...NO_TRAFFIC, allowance: null };
  const counters = new UserCounters();
  for (const bytes of [5, 6]) {
    counters.set("edge", "1", none, AT_MS);
    counters.get("edge", "1")?.count("upload", bytes, AT_MS);
  }
  const counter = counters.get("edge", "1");
  assert.deepEqual([counter?.uploadBytes, counter?.history?.openHour?.[1]], [6, 11]);
  const ofFleet = new UserCounters(false);
  ofFleet.set("edge", "1", none, AT_MS);
  assert.equal(ofFleet.get("edge", "1")?.history, null);
});

test("rows come back as they were written; one of no user goes, one that contradicts itself is an error", () => {
  const history = new UserHistory();
  history.count("upload", 1, at(0));
  history.count("download", 2, at(1));
  const gone = { listener: "edge", removedAtMs: at(2), history };
  const changes = [
    historyChange("there", history),
    historyChange("stray", history),
    removedChange("gone", gone),
  ];
  const found = decodeHistories(
    changes.map(({ key, value }) => [key, Buffer.from(value ?? [])] as const),
    (id) => id === "there",
  );
  assert.deepEqual(found.present.get("there"), history.closed);
  assert.deepEqual(found.stray, ["stray"]);
  const removed = found.removed.get("gone");
  assert.deepEqual([removed?.listener, removed?.removedAtMs], ["edge", at(2)]);
  assert.deepEqual(removed?.history.shown(at(2), 30), history.shown(at(2), 30), "the open hour, too");
  for (const row of ['{"hours":[],"days":[1,2]}', '{"hours":[0,-1,0],"days":[]}', '{"days":[]}'])
    assert.throws(() => decodeHistories([["1", Buffer.from(row)]], () => true), StoreError, row);
  assert.throws(() => historyOf("1", undefined, [0, 1, 0.5]), StoreError);
});

test("histories of removed users go by their age, those of the longest gone first", () => {
  const history = new UserHistory();
  const gone = (removedAtMs: number) => ({ listener: "edge", removedAtMs, history });
  const removed = new RemovedHistories(
    [
      ["2", gone(2)],
      ["1", gone(1)],
    ],
    ["stray"],
  );
  removed.add("3", gone(3));
  removed.expire(2);
  assert.deepEqual([...removed.doomed], ["stray", "1"]);
  assert.deepEqual([removed.find("1"), removed.find("2")?.removedAtMs], [null, 2]);
  removed.takeOut("2");
  removed.expire(10);
  assert.deepEqual([...removed.doomed], ["stray", "1", "3"]);
  removed.forget(["stray", "1"]);
  assert.deepEqual([...removed.doomed], ["3"]);
  for (let at = 0; at <= 10_000; at++) removed.add(`many ${at}`, gone(at + 10));
  assert.deepEqual([...removed.doomed], ["3", "many 0"]);
});
