import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRetryAfterMs } from "./library.ts";
import { renewalDueMs, waitBehindMs } from "./schedule.ts";

const DAY_MS = 86_400_000;

test("a certificate is renewed at two thirds of its life, up to a thirtieth earlier; one that stands in at once", () => {
  const kept = { standsIn: false, fromMs: 0, untilMs: 90 * DAY_MS, spread: 0 };
  assert.equal(renewalDueMs(kept), 60 * DAY_MS);
  assert.equal(renewalDueMs({ ...kept, spread: 1 }), 57 * DAY_MS);
  assert.equal(renewalDueMs({ ...kept, standsIn: true }), 0);
});

test("waits double from five minutes to a day, and are never shorter than what was asked for", () => {
  assert.deepEqual(
    [1, 2, 3, 20, 2000].map((failures) => waitBehindMs(failures, 0, 0) / 60_000),
    [5, 10, 20, 1440, 1440],
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 0, max: 2e9 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (failures, askedMs, random) => {
        const waitMs = waitBehindMs(failures, askedMs, random);
        assert.ok(waitMs >= Math.min(askedMs, 7 * DAY_MS) && waitMs <= 1.2 * 7 * DAY_MS + 1);
      },
    ),
  );
});

test("Retry-After is seconds or a date; anything else asks for nothing", () => {
  const nowMs = Date.UTC(2026, 10, 26);
  assert.equal(parseRetryAfterMs("120", nowMs), 120_000);
  assert.equal(parseRetryAfterMs("Thu, 26 Nov 2026 00:01:00 GMT", nowMs), 60_000);
  assert.equal(parseRetryAfterMs("Wed, 25 Nov 2026 00:01:00 GMT", nowMs), 0);
  for (const text of ["", "-5", "soon", "1e9", "99999999999999"])
    assert.equal(parseRetryAfterMs(text, nowMs), 0, text);
});
