import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenConfigs } from "../support/broken-configs.ts";
import { testEnv } from "../support/config-env.ts";
import { parseConfig } from "#config/parse.ts";
import { formatDiagnostic } from "#config/report.ts";

/** Mistakes that cost only their key or entry, as in the reference; a warning says so. */
const COSTS_ITSELF =
  /^(number (routing-mark|mtu|interval)|cidr - 127|port port: 108\d → (http|1-2-3)|unknown dialer|dialer of itself|(duplicate|reserved) listener|mixed hosts|sniffer port)/;
/** No mistakes any more: `any` is `any:53`, and the format of a list says which behaviour it can have. */
const HARMLESS = new Set(["hijack", "mrs of classical"]);

test("a mistake that costs only its key or entry is named with file, line, column and key path", () => {
  const files = brokenConfigs().filter(({ name }) => COSTS_ITSELF.test(name));
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
  const broken = brokenConfigs().filter(({ name }) => !COSTS_ITSELF.test(name) && !HARMLESS.has(name));
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
