import assert from "node:assert/strict";
import { test } from "node:test";
import { openCalendar } from "./calendar.ts";

const at = (text: string): number => Date.parse(text) / 1000;

test("days and months begin where the zone's clocks say, also when they are changed", () => {
  const rows = [
    [null, "2026-07-29T23:59:00Z", "2026-07-29T00:00:00Z", "2026-07-01T00:00:00Z"],
    ["Europe/Berlin", "2026-07-29T23:00:00Z", "2026-07-29T22:00:00Z", "2026-06-30T22:00:00Z"],
    ["Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-02-28T23:00:00Z"],
    ["Europe/Berlin", "2026-10-25T23:30:00Z", "2026-10-25T23:00:00Z", "2026-09-30T22:00:00Z"],
    ["Asia/Shanghai", "2026-01-01T00:00:00Z", "2025-12-31T16:00:00Z", "2025-12-31T16:00:00Z"],
    ["Asia/Kolkata", "2026-01-01T20:00:00Z", "2026-01-01T18:30:00Z", "2025-12-31T18:30:00Z"],
    // clocks go from 24:00 to 01:00: the day has no midnight
    ["America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T04:00:00Z", "2026-09-01T04:00:00Z"],
  ] as const;
  for (const [zone, when, day, month] of rows) {
    const calendar = openCalendar(zone);
    assert.equal(calendar.dayStart(at(when)), at(day), `${zone} ${when}`);
    assert.equal(calendar.monthStart(at(when)), at(month), `${zone} ${when}`);
  }
});
