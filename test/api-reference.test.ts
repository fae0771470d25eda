/** The references say what the routes and the definitions of keys say. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { apiReference, PAGE } from "../scripts/api-docs.ts";
import { KEYS_PAGE, keyReference } from "../scripts/key-docs.ts";

test("docs/api-reference.md is what the routes declare: `npm run docs` writes it", async () => {
  const page = await apiReference();
  assert.equal(await apiReference(), page);
  assert.equal(readFileSync(PAGE, "utf8"), page);
});

test("docs/keys.md is what the definitions say: `npm run docs` writes it", () => {
  assert.equal(readFileSync(KEYS_PAGE, "utf8"), keyReference());
});
