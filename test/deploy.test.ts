/** The files for service managers are what those understand, and name what is there. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { missing } from "./support/peer.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const deploy = join(root, "deploy");

test("systemd finds no fault with the unit", { skip: missing("systemd-analyze") }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "weir-unit-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const unit = readFileSync(join(deploy, "weir.service"), "utf8");
  const file = join(folder, "weir.service");
  writeFileSync(file, unit.replaceAll("/opt/weir/weir", join(root, "bin", "weir"))); // where it is on this machine
  // Units that this one names belong to the machine, not to it.
  const said = execFileSync("systemd-analyze", ["verify", "--recursive-errors=no", file], {
    encoding: "utf8",
  });
  assert.equal(said, "");
});

test("the unit gives the capabilities that docs/router.md asks for, and the bounding set no others", () => {
  const unit = readFileSync(join(deploy, "weir.service"), "utf8");
  const setting = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];
  assert.equal(setting("AmbientCapabilities"), setting("CapabilityBoundingSet"));
  assert.match(setting("AmbientCapabilities") ?? "", /^CAP_NET_ADMIN CAP_NET_RAW /);
});

for (const script of ["weir.init", "weir.sh"])
  test(`BusyBox reads ${script}`, { skip: missing("busybox") }, () => {
    execFileSync("busybox", ["ash", "-n", join(deploy, "openwrt", "files", script)]);
  });

test("the package recipe names files that are there", () => {
  const recipe = readFileSync(join(deploy, "openwrt", "Makefile"), "utf8");
  const named = [...recipe.matchAll(/\.\/(files\/\S+)/g)].map(([, file]) => file as string);
  assert.equal(named.length, 3);
  for (const file of named) assert.ok(existsSync(join(deploy, "openwrt", file)), file);
  const examples = [...recipe.matchAll(/PKG_BUILD_DIR\)\/(examples\/\S+)/g)].map(
    ([, file]) => file as string,
  );
  for (const file of examples) assert.ok(existsSync(join(root, file)), file);
});
