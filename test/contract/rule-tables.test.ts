/** Every thread decides alike: by the tables that it is handed, by the router, and as `explain` shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareTables } from "../support/compare-tables.ts";
import { runs } from "../support/runs.ts";

test("workers, tables, router and explain decide alike, or the tables cannot tell (`npm run prove:tables`)", async () => {
  const { decided, undecided, byWorkers } = await compareTables(runs(200), 100);
  assert.ok(byWorkers > decided / 10, `${byWorkers} by workers`);
  assert.ok(decided > undecided / 4 && undecided > 0, `${decided} decided, ${undecided} not`);
});
