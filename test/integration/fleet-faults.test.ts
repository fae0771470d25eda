/** Some of the schedules of `npm run prove:fleet -- faults`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveFaults, shownFaults } from "../proofs/fleet-faults.ts";
import { startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { randomFrom } from "../support/random.ts";

const SCHEDULES = 24;

test(
  "a connection that is cut, delayed, swallowed or reset loses no change and doubles no entry",
  { skip: noPostgres ?? false },
  async (t) => {
    await using database = await startFleetDatabase();
    const found = await proveFaults(database, SCHEDULES, randomFrom(5));
    t.diagnostic(shownFaults(found));
    assert.deepEqual(found.faults, []);
    assert.ok(found.happened > SCHEDULES / 4, shownFaults(found));
  },
);
