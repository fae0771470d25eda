/** The dashboard is built by the process that then stays as the parent of the program. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const SCRIPT = fileURLToPath(new URL("../../scripts/ui.mjs", import.meta.url));

/** Over the network, where a browser loads everything: what a page takes that is to be there within a second. */
const MOST_PACKED_BYTES = 250 * 1024;

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

test("the dashboard is small, and no process of the bundler is left when it is built", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-bundler-"));
  try {
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", CODE, folder, SCRIPT], {
      encoding: "utf8",
    });
    assert.equal(said, "left: ");
    assert.ok(existsSync(join(folder, "app.js")));
    const packed = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + gzipSync(readFileSync(join(parentPath, name))).length, 0);
    assert.ok(packed <= MOST_PACKED_BYTES, `${packed} bytes, all languages and images together`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
