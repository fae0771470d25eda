/** Hours that reach their day and month once, whatever clock, crash and retention do in between. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { governed, policy, settings } from "../../test/support/governed-ledger.ts";
import { openCalendar } from "./calendar.ts";
import type { Counters } from "./counters.ts";
import { Series } from "./series.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
const MIDNIGHT = Date.UTC(2026, 0, 15) / 1000;
const UTC = openCalendar(null);

const uploads = (upload: number): Counters => ({ upload, download: 0, connections: 0, exceeded: 0 });

function sumsOf(series: Series): readonly (readonly number[])[] {
  return (["hour", "day", "month"] as const).map((granularity) =>
    series.query(granularity, 0, 4e9, UTC).map(({ counters }) => counters.upload),
  );
}

/** `first` counted in an hour that is over and rolled up. */
function rolledSeries(first: number): Series {
  const series = new Series("global:global", MIDNIGHT);
  series.record(MIDNIGHT, uploads(first), MIDNIGHT);
  series.rollUp(MIDNIGHT + HOUR, UTC);
  return series;
}

test("a day that is dropped before its hours adds none of them to the month again", () => {
  const series = rolledSeries(7);
  const retention = { hourlySeconds: 31 * DAY, dailySeconds: DAY, monthlySeconds: 397 * DAY };
  for (let commit = 0; commit < 5; commit++) {
    const nowSeconds = MIDNIGHT + 3 * DAY + commit * 300;
    series.rollUp(nowSeconds, UTC);
    series.age(nowSeconds, retention);
  }
  assert.deepEqual(sumsOf(series), [[7], [], [7]]);
});

test("what comes to an hour that was rolled up is in its day and month at once, and once", () => {
  const series = rolledSeries(7);
  series.record(MIDNIGHT, uploads(5), MIDNIGHT);
  assert.deepEqual(sumsOf(series), [[12], [12], [12]]);
  assert.deepEqual(sumsOf(Series.decode(series.encode())), [[12], [12], [12]], "stored before the roll-up");
  series.rollUp(MIDNIGHT + HOUR, UTC);
  series.rollUp(MIDNIGHT + HOUR, UTC);
  assert.deepEqual(sumsOf(series), [[12], [12], [12]]);
});

for (const [first, second] of [
  [false, true],
  [true, false],
  [true, true],
])
  test(`two series are added up whether the hour was rolled up or not: ${first}, ${second}`, () => {
    const [one, other] = [new Series("a", MIDNIGHT), new Series("b", MIDNIGHT)];
    one.record(MIDNIGHT, uploads(7), MIDNIGHT);
    other.record(MIDNIGHT, uploads(5), MIDNIGHT);
    if (first) one.rollUp(MIDNIGHT + HOUR, UTC);
    if (second) other.rollUp(MIDNIGHT + HOUR, UTC);
    one.merge(other);
    assert.deepEqual(sumsOf(one), [[12], [12], [12]]);
    one.rollUp(MIDNIGHT + HOUR, UTC);
    assert.deepEqual(sumsOf(one), [[12], [12], [12]]);
  });

test("a crash after the clock was set back into a finished hour loses nothing that the journal has", async () => {
  const core = governed();
  const book = settings({ global: policy() });
  await core.apply(book);
  const session = core.session();
  session.reserve("upload", 7);
  core.clock.pass(HOUR);
  (await core.governance.prepare(book, { tolerant: false })).abandon(); // commits: the hour is rolled up
  core.clock.wall -= HOUR * 1000;
  session.reserve("upload", 5);
  await core.governance.tick();

  const after = governed(core.clock, core.store);
  await after.apply(book);
  for (const granularity of ["hour", "day", "month"] as const) {
    const found = after.governance.report({ key: "global:global", granularity, from: 0, to: 4e9 });
    assert.deepEqual(
      found.map(({ counters }) => counters.upload),
      [12],
      granularity,
    );
  }
  await after.apply(null);
  await core.apply(null);
});
