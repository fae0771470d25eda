import assert from "node:assert/strict";
import { test } from "node:test";
import { compareDecisions } from "../support/routing-differential.ts";

test("300 made-up decisions: explain, the router and the wire agree (`npm run prove:routing` makes 10,000)", async () => {
  assert.ok((await compareDecisions(15, 20)) > 100);
});
