/** What is promised of the audit log and of events, briefly; `npm run prove:admin` does the same at full length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveAdminKills, shownAdminKills } from "../proofs/admin-kill.ts";
import { randomFrom } from "../support/random.ts";

test(
  "killed in the middle of changes, every answered one has its entry and its event",
  { timeout: 300_000 },
  async (context) => {
    const found = await proveAdminKills(3, randomFrom(20_261_125));
    context.diagnostic(shownAdminKills(found));
    assert.deepEqual(found.faults, []);
    assert.ok(found.acknowledged > 3);
  },
);
