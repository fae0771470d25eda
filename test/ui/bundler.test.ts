/** The dashboard is built by the process that then stays as the parent of the program. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../scripts/ui.mjs", import.meta.url));

const CODE = `
  import { readFileSync } from "node:fs";
  import { setTimeout as delay } from "node:timers/promises";
  const { buildUi } = await import(process.argv[2]);
  await buildUi(process.argv[1]);
  const children = () => readFileSync("/proc/self/task/" + process.pid + "/children", "utf8").trim();
  for (let looks = 0; children() !== "" && looks < 200; looks++) await delay(10); // it is reaped a moment later
  process.stdout.write("left: " + children());
`;

const skip = process.platform === "linux" ? false : "SKIP bundler: /proc says which children there are";

test("no process of the bundler is left when the dashboard is built", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-bundler-"));
  try {
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", CODE, folder, SCRIPT], {
      encoding: "utf8",
    });
    assert.equal(said, "left: ");
    assert.ok(existsSync(join(folder, "app.js")));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
