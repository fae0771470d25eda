// Types, lint, format, and the tests beside the code.
import { spawnSync } from "node:child_process";

const steps = [
  ["tsc", ["-p", "."]],
  ["tsc", ["-p", "ui"]],
  ["oxlint", ["--type-aware", "--quiet"]],
  ["oxfmt", ["--check", "."]],
  ["node", ["scripts/test.mjs", "src/"]],
];
for (const [command, args] of steps) {
  const run = spawnSync(command, args, { stdio: "inherit", shell: process.platform === "win32" });
  if (run.status !== 0) {
    console.error(`check: ${command} failed`);
    process.exit(1);
  }
}
