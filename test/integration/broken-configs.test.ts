import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenConfigs } from "../support/broken-configs.ts";
import { testEnv } from "../support/config-env.ts";
import { parseConfig } from "#config/parse.ts";
import { formatDiagnostic } from "#config/report.ts";

test("every broken file is refused with file, line, column, key path and a message", () => {
  const broken = brokenConfigs();
  assert.ok(broken.length >= 200, `${broken.length} broken files`);
  assert.equal(new Set(broken.map(({ text }) => text)).size, broken.length);
  for (const { name, text } of broken) {
    const { errors } = parseConfig(text, testEnv());
    assert.ok(errors !== undefined && errors.length > 0, `${name} was accepted`);
    const lines = text.split("\n").length;
    for (const error of errors) {
      assert.match(formatDiagnostic("c.yaml", error), /^c\.yaml:[1-9]\d*:[1-9]\d* \S+.*: ./, name);
      assert.ok(error.line <= lines, name);
    }
    assert.ok(
      errors.some(({ path }) => path !== ""),
      `${name}: no error has a key path`,
    );
  }
});
