/** Nothing that is captured leaves by itself while a TUN is changed, the program is started again, or after it was killed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leakedIn, proveLeaks, shownLeaks, type LeakCase } from "../proofs/leaks.ts";
import { skipNetns } from "../support/netns.ts";

const skip = skipNetns("leaks", "nft", "curl");
const COUNTS = { changes: 6, reloads: 2, restarts: 2, kills: 2, goneMs: 2_000 };
const CASES: readonly LeakCase[] = [
  { by: "auto-redirect", onExit: "open", lateMs: 30, masquerades: false },
  { by: "auto-redirect", onExit: "closed", lateMs: 30, masquerades: true },
  { by: "auto-route", onExit: "open", lateMs: 30, masquerades: true },
  { by: "auto-route", onExit: "closed", lateMs: 30, masquerades: false },
];

for (const each of CASES)
  test(
    `${each.by}, on-exit: ${each.onExit}${each.masquerades ? ", behind masquerading" : ""}`,
    { skip, timeout: 300_000 },
    async (t) => {
      const { steps } = await proveLeaks(each, COUNTS, (step) => t.diagnostic(shownLeaks(each, step)));
      assert.equal(steps.length, each.onExit === "closed" ? 4 : 3);
      for (const step of steps) {
        assert.equal(leakedIn(step), 0, shownLeaks(each, step));
        assert.ok(step.rounds > step.times, "connections to the router itself go on");
      }
    },
  );
