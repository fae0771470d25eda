// node scripts/run.mjs FILE [ARGUMENT …]: sets up the checkout, then runs FILE with the pinned Node 26, or with this
// Node where it is new enough. Plain JavaScript: any Node ≥ 20 runs it. A shell that chained two commands would remember
// where it found the old `node`, so the runtime is named by its path.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import "./setup.mjs";

const NEWEST_NEEDED = 26;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const runtime = findRuntime();
const flags = ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=8"]; // as bin/weir has them
const child = spawn(runtime, [...flags, ...process.argv.slice(2)], { stdio: "inherit" });
// Ctrl-C and a closed terminal reach the child by themselves; only what was sent to this process alone is passed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));

function findRuntime() {
  if (Number.parseInt(process.versions.node, 10) >= NEWEST_NEEDED) return process.execPath;
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const file = process.platform === "win32" ? "node.exe" : "node";
  const installed = Object.keys(optionalDependencies).map((name) =>
    join(root, "node_modules", name, "bin", file),
  );
  // Without it the file itself says in one line what is missing.
  return installed.find((path) => existsSync(path)) ?? process.execPath;
}
