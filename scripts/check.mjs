// Types, lint, format, and the tests beside the code, side by side; each one's words are shown whole when it is done.
// What is kept between runs (`node_modules/.cache`) goes by content: types are checked, and the rules that need them
// applied, in files that changed since nothing was found in them, and in all that depend on those: in every file of a
// fresh clone. Left to `npm test`: tests with large inputs and slow ciphers, and most runs of properties.
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { resolve } from "node:path";
import { openLintState } from "./lint-state.mjs";

const PORTABLE = "src/**/*.portable.test.ts";
const CACHE = "node_modules/.cache/check";
/** The compiler's own errors, and the rules that need types, of one program. */
const WITH_TYPES = ["--type-aware", "--type-check"];
const pure = globSync("src/**/*.test.ts", { exclude: [PORTABLE] }).sort();

const lint = openLintState(`${CACHE}/lint.json`);
const { affected } = lint;
/** Of so many it is quicker to look at all. */
const all = affected.length > lint.files.length / 2;

const steps = [
  ["oxlint", ["--quiet", ...(all ? WITH_TYPES : [])]],
  ...(all || affected.length === 0 ? [] : [["oxlint", ["--quiet", ...WITH_TYPES, ...affected]]]),
  ["oxfmt", ["--check", "."]],
  // They are pure, so a process runs many: starting one for each file takes longer than the tests. Two use two cores.
  ...[0, 1].map((share) =>
    tests(
      pure.filter((_, at) => at % 2 === share),
      ["--test-isolation=none"],
    ),
  ),
  // These have a runtime without node:ffi, which is a matter of their whole process.
  tests(globSync(PORTABLE), []),
];

// What the tests read: properties have fewer runs here than in `npm test` (`test/support/runs.ts`).
const env = {
  ...process.env,
  WEIR_QUICK_CHECK: "1",
  NODE_COMPILE_CACHE: resolve(CACHE, "compiled"),
  GOGC: "300", // of the linter: a sixth less CPU time for a tenth more memory
};
const results = await Promise.all(steps.map(([command, args]) => run(command, args)));
if (steps.every(([command], at) => command !== "oxlint" || results[at] === 0)) lint.save();
const failed = steps.filter((_, at) => results[at] !== 0).map(([command]) => command);
console.log(
  `check: types, and rules that need them, checked in ${affected.length} of ${lint.files.length} files`,
);
console.log("check: left to npm test: tests with large inputs and slow ciphers, most runs of properties");
console.log(failed.length === 0 ? "check: all is well" : `check: ${failed.join(", ")} failed`);
process.exit(failed.length === 0 ? 0 : 1);

function tests(files, more) {
  const flags = [
    "--max-semi-space-size=32", // much dies young in them
    "--import=./test/support/quick-properties.mjs",
    "--disable-warning=ExperimentalWarning",
    "--test",
    ...more,
    "--test-reporter=dot",
  ];
  return [process.execPath, [...flags, ...files]];
}

function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { shell: process.platform === "win32", env });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.on("close", (code) => {
      process.stdout.write(output);
      resolve(code ?? 1);
    });
  });
}
