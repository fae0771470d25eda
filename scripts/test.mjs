// Runs every test file under the pinned runtime; arguments narrow the files (substrings of their paths). A file that
// fails beside others runs once more by itself: these are real sockets and processes on machines that others load, too.
// What passes only then is named as FLAKY. Ends with the reasons of what was skipped and one line that counts. With
// REQUIRE_NETNS=1 a skipped namespace test fails.
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
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

const first = runTests(files, 2);
let { status, passed, failed } = first;
const again = first.failedFiles.map((file) => relative(root, file)).filter((file) => files.includes(file));
if (status !== 0 && again.length > 0) {
  console.log(`\nonce more, one at a time: ${again.join(", ")}`);
  const second = runTests(again, 1);
  status = second.status;
  passed += first.failed - second.failed;
  failed = second.failed;
  for (const file of again)
    if (!second.failedFiles.some((path) => relative(root, path) === file)) console.log(`FLAKY ${file}`);
}

for (const { file, name, reason } of first.skipped)
  console.log(`SKIP ${relative(root, file)}: ${name}: ${reason}`);
if (
  process.env.REQUIRE_NETNS === "1" &&
  first.skipped.some(({ file }) => relative(root, file).startsWith("test/netns/"))
) {
  console.log("REQUIRE_NETNS=1: a namespace test was skipped");
  status ||= 1;
}
console.log(`${passed} passed, ${failed} failed, ${first.skipped.length} skipped`);
process.exit(status);

function runTests(paths, concurrency) {
  const folder = mkdtempSync(join(tmpdir(), "weir-test-"));
  const countsFile = join(folder, "counts.json");
  const reporters = [
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${join(root, "scripts", "count-reporter.mjs")}`,
    `--test-reporter-destination=${countsFile}`,
  ];
  const run = spawnSync(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      `--import=${join(root, "scripts", "test-limit.mjs")}`,
      "--test",
      `--test-concurrency=${concurrency}`,
      ...reporters,
      ...paths,
    ],
    { cwd: root, stdio: "inherit", env: { ...process.env, WEIR_QUICK_CHECK: "" } }, // every property at full length
  );
  const counts = JSON.parse(readFileSync(countsFile, "utf8"));
  rmSync(folder, { recursive: true });
  return { status: run.status ?? 1, ...counts };
}
