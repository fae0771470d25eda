// Installs exactly what the lock file says, once per lock file. Plain JavaScript: any Node ≥ 20 runs it.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, "node_modules", ".installed");
const wanted = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex");

if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
  console.error("weir: installing what package-lock.json lists …");
  const npm = process.env.npm_execpath;
  const [command, ...before] = npm ? [process.execPath, npm] : ["npm"];
  try {
    execFileSync(command, [...before, "ci", "--no-fund", "--no-audit", "--loglevel=error", "--no-usage"], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit"],
    });
  } catch {
    console.error("weir: npm ci failed, see above; nothing was started");
    process.exit(1);
  }
  writeFileSync(stamp, wanted);
}

const { ensureUi } = await import("./ui.mjs"); // after the installation, which it needs
try {
  await ensureUi();
} catch (error) {
  console.error(`weir: the dashboard could not be built, /ui/ will say so: ${error.message}`);
}
