/** What is promised of managed users holds below REALITY; `npm run prove:users -- reality=500` at full length. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { proveRevocation, shownRevocation } from "../proofs/users-revoke.ts";
import { openSite } from "../support/reality.ts";
import { realityCarriers } from "../support/reality-carriers.ts";

const site = await openSite();
after(() => site[Symbol.asyncDispose]());

for (const carrier of realityCarriers(site.port))
  test(
    `${carrier.tag}: of 20 users one is created, changed, disabled and deleted, and no other user notices`,
    { timeout: 300_000 },
    async (context) => {
      const found = await proveRevocation(carrier, { users: 20, rounds: 1 });
      context.diagnostic(shownRevocation(found));
      assert.deepEqual([found.broken, found.dropped], [0, 0]);
      assert.ok(found.handshakes > 0);
    },
  );
