/** Nothing that workers and the main thread hand to one another is touched by both, briefly; `npm run prove:relay` does the same at length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveSeams, shownSeams } from "../proofs/relay-seams.ts";
import { randomFrom } from "../support/random.ts";

const skip = process.platform === "linux" ? false : "SKIP relay seams: needs Linux";

for (const accounting of ["unlimited", "limited", "alone"] as const)
  test(
    `${accounting}: however long a thread waits at a seam, nothing crashes and every byte is counted`,
    { skip },
    async (context) => {
      const found = await proveSeams({
        secondsEach: 0.7,
        seamMs: 2,
        accounting,
        random: randomFrom(20_261_123),
      });
      context.diagnostic(shownSeams(found));
      assert.deepEqual(found.faults, []);
      assert.ok(found.sessions > 0 && found.unknownClients > 0);
    },
  );
