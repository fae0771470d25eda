/** What is promised of managed users, briefly; `npm run prove:users` does the same at full length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveCounts, proveCrashes, shownCounts, shownCrashes } from "../proofs/users-count.ts";
import { proveDamage, shownDamage } from "../proofs/users-damage.ts";
import { proveKills, shownKills } from "../proofs/users-kill.ts";
import { proveRevocation, shownRevocation } from "../proofs/users-revoke.ts";
import { randomFrom } from "../support/random.ts";
import { ANYTLS, CARRIERS } from "../support/user-traffic.ts";

const random = randomFrom(20_261_120);
/** Ends a test that waits for what does not come; no measure of anything. */
const LONG = { timeout: 300_000 };

for (const backend of CARRIERS) {
  test(
    `${backend.tag}: of 20 users one is created, changed, disabled and deleted, and no other user notices`,
    LONG,
    async (context) => {
      const found = await proveRevocation(backend, { users: 20, rounds: 1 });
      context.diagnostic(shownRevocation(found));
      assert.deepEqual([found.broken, found.dropped], [0, 0]);
      assert.ok(found.handshakes > 0);
    },
  );

  test(`${backend.tag}: users have moved what the origins saw, to the byte`, LONG, async (context) => {
    const found = await proveCounts(backend, 60, random);
    context.diagnostic(shownCounts(found));
    assert.equal(found.difference, 0);
  });
}

test(
  "killed in the middle of changes, it has what it acknowledged, and no revision goes back",
  LONG,
  async (context) => {
    const found = await proveKills(4, random);
    context.diagnostic(shownKills(found));
    assert.deepEqual(found.faults, []);
    assert.ok(found.acknowledged > 0);
  },
);

test("whatever one file of the state has suffered, it starts with all that was acknowledged", async (context) => {
  const found = await proveDamage(24, random);
  context.diagnostic(shownDamage(found));
  assert.deepEqual(found.faults, []);
  assert.ok(found.healed > 0);
});

test("killed under load, no byte is counted twice", LONG, async (context) => {
  const found = await proveCrashes(ANYTLS, 2, random);
  context.diagnostic(shownCrashes(found));
  assert.equal(found.doubled, 0);
  assert.ok((found.lostMs.at(-1) as number) < 10_000); // a second where the machine is not busy
});
