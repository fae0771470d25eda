/** What is promised of managed users holds below VLESS Encryption; `npm run prove:users -- encryption=500` at full length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveRevocation, shownRevocation } from "../proofs/users-revoke.ts";
import { encryptionCarriers } from "../support/encryption-carriers.ts";

for (const carrier of encryptionCarriers())
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
