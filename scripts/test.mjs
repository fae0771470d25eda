// Runs every test file under the pinned runtime; arguments narrow the files (substrings of their paths).
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wanted = process.argv.slice(2);
const files = globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { cwd: root })
  .sort()
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(", ")}`);
  process.exit(1);
}
const run = spawnSync(
  "node",
  ["--disable-warning=ExperimentalWarning", "--test", "--test-concurrency=2", ...files],
  {
    cwd: root,
    stdio: "inherit",
  },
);
process.exit(run.status ?? 1);
