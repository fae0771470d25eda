import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test, type TestContext } from "node:test";
import { newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { ENDED, REQUESTED } from "#dataplane/workers/shared/opcodes.ts";
import { EventReporter } from "./event-reporter.ts";

const LONG_MS = 3_000;
const SLOT = 7;

/** A main thread that takes events as soon as it is woken, by a clock that stands still in between. */
function openReporter(t: TestContext) {
  const clock = { nowMs: 1_000 };
  t.mock.method(performance, "now", () => clock.nowMs);
  const table = new RelayMemory(newRelayMemory());
  const told: number[] = [];
  const post = (): void => {
    table.takeEvents((_, kind) => void told.push(kind));
  };
  return { clock, told, reporter: new EventReporter(table, post, undefined) };
}

test("an event is told in its turn, and those that have waited with it", (t) => {
  const { told, reporter } = openReporter(t);
  reporter.reportLazily(SLOT, ENDED);
  reporter.report(SLOT + 1, REQUESTED);
  assert.equal(reporter.signal(LONG_MS, true), LONG_MS);
  assert.deepEqual(told, [ENDED, REQUESTED]);
});

test("an event that can wait is told when the worker has had nothing to do for a moment", (t) => {
  const { clock, told, reporter } = openReporter(t);
  reporter.reportLazily(SLOT, ENDED);
  assert.equal(reporter.signal(LONG_MS, true), 20);
  clock.nowMs += 19;
  assert.equal(reporter.signal(LONG_MS, false), 1);
  clock.nowMs += 1;
  assert.equal(reporter.signal(LONG_MS, true), 1, "other events came in this turn");
  assert.deepEqual(told, []);
  clock.nowMs += 1;
  assert.equal(reporter.signal(LONG_MS, false), LONG_MS);
  assert.deepEqual(told, [ENDED]);
});

test("an event waits for no longer than 40 ms, however busy the worker is", (t) => {
  const { clock, told, reporter } = openReporter(t);
  reporter.reportLazily(SLOT, ENDED);
  const waitedMs: number[] = [];
  for (const beganMs = clock.nowMs; told.length === 0; clock.nowMs += 0.5) {
    reporter.signal(LONG_MS, true);
    if (told.length > 0) waitedMs.push(clock.nowMs - beganMs);
  }
  assert.deepEqual(waitedMs, [40]);
});
