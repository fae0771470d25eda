/** The tests beside the code run in one process (`npm run check`), so none of them may change it for the others. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const CHANGES = [
  /support\/without-ffi\.ts/,
  /(?<!t\.)\bmock\.(?:method\((?:process|globalThis)\b|timers)/, // of one test, `t.mock`, they end with it
  /^\s*process\.(?!exitCode\b)\w+ = /m,
];

test("what changes the process stands in files that get one of their own: *.portable.test.ts", () => {
  const files = globSync("src/**/*.test.ts", { cwd: root });
  assert.ok(files.length > 100);
  const changing = files.filter((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return CHANGES.some((pattern) => pattern.test(text));
  });
  assert.deepEqual(
    changing.filter((file) => !file.endsWith(".portable.test.ts")),
    [],
  );
  assert.ok(changing.length > 0, "the patterns find those that there are");
});
