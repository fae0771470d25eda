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

/** What an action of the init script asks procd and the program for, with `options` in /etc/config/weir. */
function asked(action: string, options: Readonly<Record<string, string>>): readonly string[] {
  const surroundings = `
config_load() { :; }
config_get() { eval "$1=\\"\\$OPTION_$3\\""; [ -n "$(eval echo \\$$1)" ] || eval "$1=\\"$4\\""; }
config_get_bool() { config_get "$@"; }
modprobe() { :; }
rc_procd() { "$@"; echo "procd compares"; }
for name in open_instance set_param close_instance send_signal add_reload_trigger; do
  eval "procd_$name() { echo $name \\"\\$@\\"; }"
done
PROGRAM() { echo "weir $*"; }
`;
  const script = readFileSync(join(deploy, "openwrt", "files", "weir.init"), "utf8");
  const text = `${surroundings}\n${script.replace("PROG=/usr/bin/weir", "PROG=PROGRAM")}\n${action}\n`;
  const env = Object.fromEntries(Object.entries(options).map(([name, value]) => [`OPTION_${name}`, value]));
  const shown = execFileSync("busybox", ["ash", "-c", text], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  return shown.trim().split("\n");
}

test(
  "the init script: procd gets a reload, too, which has other options",
  { skip: missing("busybox") },
  () => {
    const options = { enabled: "1", home: "/srv/weir", config: "/srv/weir.yaml" };
    const reloaded = asked("reload_service", options);
    assert.ok(
      reloaded.includes("set_param command PROGRAM -d /srv/weir -f /srv/weir.yaml"),
      reloaded.join("\n"),
    );
    assert.deepEqual(reloaded.slice(-2), ["procd compares", "send_signal weir * HUP"]);
    assert.ok(!reloaded.some((line) => line.startsWith("set_param file")), "procd alone would start it anew");
    const off = asked("reload_service", { ...options, enabled: "0" });
    assert.deepEqual(off, ["procd compares", "send_signal weir * HUP"]);
    assert.deepEqual(asked("service_stopped", options), [
      "weir cleanup -keep-closed -d /srv/weir -f /srv/weir.yaml",
    ]);
  },
);

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
