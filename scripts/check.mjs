// Types, lint, format, and the tests beside the code, side by side; each one's words are shown whole when it is done.
import { spawn } from "node:child_process";
import { globSync } from "node:fs";

const PORTABLE = "src/**/*.portable.test.ts";
const pure = globSync("src/**/*.test.ts", { exclude: [PORTABLE] }).sort();

const steps = [
  ["tsc", ["-p", "."]],
  ["oxlint", ["--type-aware", "--quiet"]],
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

const results = await Promise.all(steps.map(([command, args]) => run(command, args)));
const failed = steps.filter((_, at) => results[at] !== 0).map(([command]) => command);
console.log(failed.length === 0 ? "check: all is well" : `check: ${failed.join(", ")} failed`);
process.exit(failed.length === 0 ? 0 : 1);

function tests(files, more) {
  const flags = ["--disable-warning=ExperimentalWarning", "--test", ...more, "--test-reporter=dot"];
  return [process.execPath, [...flags, ...files]];
}

function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { shell: process.platform === "win32" });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.on("close", (code) => {
      process.stdout.write(output);
      resolve(code ?? 1);
    });
  });
}
