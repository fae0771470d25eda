import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenConfigs, partlyBrokenConfigs } from "../support/broken-configs.ts";
import { testEnv } from "../support/config-env.ts";
import { parseConfig } from "#config/parse.ts";
import { formatDiagnostic } from "#config/report.ts";

test("a mistake that costs only its key or entry is named with file, line, column and key path", () => {
  const files = partlyBrokenConfigs();
  assert.ok(files.length >= 30, `${files.length} files`);
  for (const { name, text } of files) {
    const { errors, warnings } = parseConfig(text, testEnv());
    assert.equal(errors, undefined, name);
    const said = warnings.map((warning) => formatDiagnostic("c.yaml", warning));
    assert.ok(
      said.some((line) =>
        /^c\.yaml:[1-9]\d*:[1-9]\d* [\w[\]."-]+: .*(left out|cannot be dialled|can be dialled)/.test(line),
      ),
      `${name}: ${said.join("\n")}`,
    );
  }
});

test("every other broken file is refused with file, line, column, key path and a message", () => {
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
