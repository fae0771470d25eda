import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fullAt, grantsNow, holdMsOf, paidUntil, rateOf } from "./rate.ts";

test("bursts are 40 ms of the rate, at least 1,500 bytes, at most 4 MiB; a rate is whole bytes a second, at least one", () => {
  assert.deepEqual(rateOf(8e6), { bytesPerMs: 1000, burstBytes: 40_000, burstMs: 40 });
  assert.deepEqual(rateOf(8000), { bytesPerMs: 1, burstBytes: 1500, burstMs: 1500 });
  assert.equal(rateOf(1).bytesPerMs, 0.001);
  assert.equal(rateOf(15).bytesPerMs, 0.001);
  assert.equal(rateOf(100e9).burstBytes, 4 * 1024 * 1024);
});

test("whatever is asked and whenever: never more than the burst and the rate of the time, and what is given back is free again", () => {
  const step = fc.record({
    pause: fc.integer({ min: 0, max: 500 }),
    bytes: fc.integer({ min: 1, max: 70_000 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), fc.array(step, { maxLength: 60 }), (bits, steps) => {
      const rate = rateOf(bits);
      let nowMs = 0;
      let untilMs = fullAt(rate, nowMs);
      let passed = 0;
      for (const { pause, bytes } of steps) {
        nowMs += pause;
        const before = Math.max(untilMs, nowMs - rate.burstMs);
        if (!grantsNow(rate, untilMs, nowMs, bytes)) continue;
        const paid = paidUntil(rate, untilMs, nowMs, bytes);
        const back = paidUntil(rate, paid, nowMs, -bytes);
        assert.ok(Math.abs(back - before) <= 1e-6 * Math.max(1, Math.abs(paid)));
        untilMs = paid;
        passed += bytes;
        const owed = Math.max(0, bytes - rate.burstBytes); // one datagram larger than a full bucket
        assert.ok(passed <= (rate.burstBytes + nowMs * rate.bytesPerMs + owed) * 1.000001 + 1);
      }
    }),
  );
});

test("a debt below a millisecond stands and is not waited for", () => {
  const rate = rateOf(8e6);
  const untilMs = paidUntil(rate, fullAt(rate, 0), 0, 40_900);
  assert.equal(holdMsOf(untilMs, 0), 0);
  assert.ok(Math.abs(holdMsOf(paidUntil(rate, untilMs, 0, 1000), 0) - 1.9) < 1e-9);
});
