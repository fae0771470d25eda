/** What can be configured is in the manual. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { GROUP_KINDS } from "#groups/index.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";

const docs = join(dirname(dirname(fileURLToPath(import.meta.url))), "docs");
const pages = (pattern: string) =>
  globSync(pattern, { cwd: docs })
    .map((file) => readFileSync(join(docs, file), "utf8"))
    .join("\n");

test("every protocol has a page that shows its type", () => {
  const text = pages("protocols/*.md");
  const missing = PROTOCOLS.map(({ type }) => type).filter(
    (type) => !new RegExp(`type: ${type}\\b`).test(text),
  );
  assert.deepEqual(missing, []);
});

test("every group kind and rule type is in the manual", () => {
  const text = pages("*.md");
  const words = [...GROUP_KINDS.map(({ type }) => type), ...RULE_TYPES.map(({ type }) => type)];
  assert.deepEqual(
    words.filter((word) => !text.includes(word)),
    [],
  );
});

test("the index of decisions names each once, and no other", () => {
  const index = readFileSync(join(docs, "adr", "README.md"), "utf8");
  const named = [...index.matchAll(/^- \[\d{4}\]\(([^)]+)\)/gm)].map(([, file = ""]) => file);
  assert.deepEqual(named.sort(), globSync("0*.md", { cwd: join(docs, "adr") }).sort());
});

test("the change log says nothing twice", () => {
  const lines = readFileSync(join(docs, "..", "CHANGELOG.md"), "utf8").split("\n");
  const said = lines.filter((line) => line.startsWith("- "));
  assert.deepEqual(
    said.filter((line, at) => said.indexOf(line) !== at),
    [],
  );
});
