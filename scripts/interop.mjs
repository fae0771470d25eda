// Prints who we can talk to: the matrix of docs/interop.md, against the programs that the PATH holds.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const node = join(root, "node_modules", ".bin", "node");
const code = `import("${new URL("../test/support/interop/matrix.ts", import.meta.url)}").then(({ main }) => main(process.argv.slice(1)))`;
const { status } = spawnSync(
  node,
  ["--disable-warning=ExperimentalWarning", "-e", code, "--", ...process.argv.slice(2)],
  { stdio: "inherit", cwd: root },
);
process.exit(status ?? 1);
