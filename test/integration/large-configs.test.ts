/** Configurations larger than any written by hand, which take too long for the tests beside the code. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withBlock } from "#config/block-edit.ts";
import { parseYamlDocument } from "#core/yaml-document.ts";
import { errorsOf } from "../support/config-texts.ts";

test("300,000 keys are no configuration", () => {
  const text = Array.from({ length: 300_000 }, (_, at) => `k${at}: 1\n`).join("");
  assert.deepEqual(errorsOf(text), [
    "1:1 (document): expected the settings of a configuration, got 300000 keys; at most 10000 can stand here",
  ]);
});

test("many keys are edited in linear time", () => {
  const text = `hosts:\n${Array.from({ length: 40_000 }, (_, at) => `  h${at}: 192.0.2.1\n`).join("")}`;
  const parseMs = cpuOf(() => parseYamlDocument(text, { schema: "core", uniqueKeys: false }));
  const editMs = cpuOf(() => withBlock(text, "traffic-control", { enabled: true }));
  assert.ok(editMs < 12 * parseMs, `${editMs} ms to edit, ${parseMs} ms to read`);
});

/** Milliseconds of this thread's own, so that a busy machine changes nothing. */
function cpuOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
