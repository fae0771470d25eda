import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { QUOTA_CYCLES, type QuotaCycle } from "#core/users.ts";
import { cycleAt, CycleUsage } from "./cycle.ts";

const at = (text: string) => Date.parse(text) / 1000;

test("days begin at midnight, weeks on Monday, months on the first, in UTC", () => {
  const rows = [
    ["day", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"],
    ["day", "2026-02-28T23:59:59Z", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"],
    ["week", "2026-11-22T23:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"],
    ["week", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"],
    ["week", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"],
    ["month", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"],
    ["month", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
  ] as const;
  for (const [cycle, now, start, end] of rows)
    assert.deepEqual(cycleAt(cycle, at(now)), [at(start), at(end)], `${cycle} ${now}`);
});

test("every moment lies in one cycle, and cycles follow each other without a gap", () => {
  const moment = fc.integer({ min: 0, max: at("2100-01-01T00:00:00Z") });
  fc.assert(
    fc.property(fc.constantFrom(...QUOTA_CYCLES), moment, (cycle, now) => {
      const [start, end] = cycleAt(cycle, now);
      assert.ok(start <= now && now < end);
      assert.deepEqual(cycleAt(cycle, start), [start, end]);
      assert.equal(cycleAt(cycle, end)[0], end);
      assert.equal(cycleAt(cycle, end - 1)[0], start);
    }),
  );
});

const step = fc.record({
  pause: fc.integer({ min: 0, max: 40 * 86_400 }),
  upload: fc.integer({ min: 0, max: 1e9 }),
  download: fc.integer({ min: 0, max: 1e9 }),
});

test("while the clock goes on: what counts is what was moved since the cycle began, through restarts, too", () => {
  fc.assert(
    fc.property(fc.constantFrom(...QUOTA_CYCLES), fc.array(step, { maxLength: 60 }), (cycle, steps) => {
      let usage = new CycleUsage(cycle);
      const moved: (readonly [number, number])[] = [];
      let now = at("2026-11-20T12:00:00Z");
      for (const { pause, upload, download } of steps) {
        now += pause;
        usage.add("upload", upload, now);
        usage.add("download", download, now);
        moved.push([now, upload + download]);
        assert.equal(sumOf(usage, now), sumSince(moved, cycleAt(cycle, now)[0]));
        if (pause % 3 === 0) usage = new CycleUsage(cycle, usage.store());
      }
    }),
  );
});

const sumOf = (usage: CycleUsage, now: number) => usage.at(now).upload + usage.at(now).download;
const sumSince = (moved: readonly (readonly [number, number])[], start: number) =>
  moved.reduce((sum, [when, bytes]) => sum + (when >= start ? bytes : 0), 0);

const jump = fc.record({
  to: fc.integer({ min: 0, max: at("2060-01-01T00:00:00Z") }),
  bytes: fc.integer({ min: 0, max: 1e9 }),
});

test("a clock that jumps anywhere and comes back finds what was used, and a cycle is given once", () => {
  fc.assert(
    fc.property(
      fc.constantFrom<QuotaCycle>("day", "week", "month"),
      fc.array(jump, { maxLength: 3 }),
      fc.integer({ min: 1, max: 1e9 }),
      (cycle, jumps, before) => {
        const now = at("2026-11-20T12:00:00Z");
        let usage = new CycleUsage(cycle);
        usage.add("upload", before, now);
        let here = before;
        for (const [nth, { to, bytes }] of jumps.entries()) {
          const isHere = cycleAt(cycle, to)[0] === cycleAt(cycle, now)[0];
          const found = sumOf(usage, to);
          // A date before everything that is known goes on with what is known: never a new quota for nothing.
          if (to < cycleAt(cycle, now)[0] && nth === 0) assert.equal(found, before);
          usage.add("download", bytes, to);
          assert.equal(sumOf(usage, to), found + bytes);
          usage = new CycleUsage(cycle, usage.store());
          if (isHere) here += bytes;
        }
        assert.ok(sumOf(usage, now) >= here, "what was used in this cycle is not forgotten");
      },
    ),
  );
});

test("a machine without a clock of its own starts in 1970, gets the time, and has lost nothing", () => {
  const now = at("2026-11-20T12:00:00Z");
  const first = new CycleUsage("month");
  first.add("upload", 700, at("2026-10-20T12:00:00Z"));
  first.add("upload", 500, now);
  const again = new CycleUsage("month", first.store());
  assert.equal(again.at(0).upload, 500);
  again.add("download", 20, 60);
  assert.deepEqual({ ...again.at(now) }, { start: cycleAt("month", now)[0], upload: 500, download: 20 });
});

test("a wrong year forgives nothing for good, and keeps no user out for years", () => {
  const usage = new CycleUsage("month");
  usage.add("upload", 500, at("2026-11-20T12:00:00Z"));
  usage.add("upload", 900, at("2031-01-01T00:00:00Z"));
  assert.equal(usage.at(at("2026-11-21T12:00:00Z")).upload, 500);
  assert.equal(usage.at(at("2026-12-01T00:00:00Z")).upload, 0);
  assert.equal(usage.at(at("2027-01-01T00:00:00Z")).upload, 0);
});

test("what is taken back does not go below nothing", () => {
  const usage = new CycleUsage("day");
  usage.add("upload", 5, 0);
  usage.add("upload", -9, 0);
  assert.equal(usage.at(0).upload, 0);
});
