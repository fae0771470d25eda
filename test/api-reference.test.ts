/** The reference says what the routes say. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { apiReference, PAGE } from "../scripts/api-docs.ts";

test("docs/api-reference.md is what the routes declare: `npm run docs` writes it", async () => {
  const page = await apiReference();
  assert.equal(await apiReference(), page);
  assert.equal(readFileSync(PAGE, "utf8"), page);
});
