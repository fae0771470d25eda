import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { governed, policy, settings, TurnedClock } from "../../test/support/governed-ledger.ts";
import { runs } from "../../test/support/runs.ts";

const HOUR = 3600;

/** What a calendar on the wall says of this hour, asked of the runtime for each hour by itself. */
function namesOf(timeZone: string): (at: number) => { readonly day: string; readonly month: string } {
  const format = new Intl.DateTimeFormat("en-CA", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  });
  return (at) => {
    const day = format.format(at * 1000);
    return { day, month: day.slice(0, 7) };
  };
}

/** Clocks change in each of these, one way and the other; in Lord Howe by half an hour, in Cairo and Santiago at midnight. */
const CHANGES = [
  ["Europe/Berlin", "2026-03-29T01:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00Z"],
  ["America/New_York", "2026-03-08T07:00Z"],
  ["America/New_York", "2026-11-01T06:00Z"],
  ["America/Santiago", "2026-09-06T04:00Z"],
  ["America/Santiago", "2026-04-05T03:00Z"],
  ["Africa/Cairo", "2026-04-23T22:00Z"],
  ["Africa/Cairo", "2026-10-29T21:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30Z"],
  ["Asia/Shanghai", "2026-08-01T00:00Z"],
  ["UTC", "2026-08-01T00:00Z"],
] as const;

for (const [timeZone, when] of CHANGES)
  test(`${timeZone} around ${when}: days and months of a report are those of the zone, of 23 and 25 hours, too`, async () => {
    const nameOf = namesOf(timeZone);
    const change = Date.parse(when) / 1000;
    const hour = fc.integer({ min: -60, max: 60 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(hour, fc.integer({ min: 1, max: 1000 })), { minLength: 1, maxLength: 40 }),
        async (uses) => {
          const clock = new TurnedClock();
          const core = governed(clock);
          const { reports } = settings();
          const book = settings({ global: policy(), reports: { ...reports, timeZone } });
          const sums = { day: new Map<string, number>(), month: new Map<string, number>() };
          await core.apply(book);
          const session = core.session();
          const ordered = uses
            .map(([hours, bytes]) => [change + hours * HOUR + 60, bytes] as const)
            .sort(([a], [b]) => a - b);
          for (const [at, bytes] of ordered) {
            clock.wall = at * 1000;
            session.reserve("upload", bytes);
            if (bytes % 5 === 0) await core.apply(book); // commits: finished hours are rolled up
            const names = nameOf(Math.floor(at / HOUR) * HOUR);
            for (const granularity of ["day", "month"] as const)
              sums[granularity].set(
                names[granularity],
                (sums[granularity].get(names[granularity]) ?? 0) + bytes,
              );
          }
          const now = clock.wall / 1000;
          for (const granularity of ["day", "month"] as const) {
            const found = core.governance
              .report({ key: "global:global", granularity, from: now - 100 * 86_400, to: now + 1 })
              .filter(({ counters }) => counters.upload > 0) // the session began on another day
              .map(({ start, counters }) => [nameOf(start)[granularity], counters.upload]);
            assert.deepEqual(new Map(found as [string, number][]), sums[granularity], granularity);
            assert.equal(found.length, sums[granularity].size, "no day twice");
          }
          await core.apply(null);
        },
      ),
      { numRuns: runs(60, 5) },
    );
  });

test("a clock that is years ahead for a moment drops no report and no policy; one that stays there does", async () => {
  const core = governed();
  const book = settings({ global: policy() });
  const old = { ...policy({ id: "old" }), kind: "proxy" as const, target: "DIRECT" };
  await core.apply(settings({ global: policy(), targets: [old] }));
  core.session().reserve("upload", 7);
  await core.apply(book);
  const years = 3 * 366 * 24 * HOUR;
  const kept = () => [
    core.governance.report({ key: "global:global", granularity: "hour", from: 0, to: 4e9 }).length,
    core.store.parts.get("policies")?.size,
  ];
  const commit = async () => (await core.governance.prepare(book, { tolerant: false })).abandon();
  await commit();
  assert.deepEqual(kept(), [1, 2]);
  core.clock.wall += years * 1000;
  await commit();
  core.clock.wall -= years * 1000;
  core.clock.pass(HOUR);
  await commit();
  assert.deepEqual(kept(), [1, 2]);
  core.clock.wall += years * 1000;
  await commit();
  core.clock.pass(HOUR);
  await commit();
  assert.deepEqual(kept(), [0, 1]);
  await core.apply(null);
});
