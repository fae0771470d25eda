/** What `tun.on-exit: closed` leaves behind, and what removes it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { afterStop, asService } from "../support/as-service.ts";
import { skipNetns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";
import { FAR, openTransit, type Transit } from "../support/transit.ts";
import { until } from "../support/until.ts";
import { config, curl, MARK_MODE, patch } from "../support/tun-row.ts";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const skip = skipNetns("on-exit", "nft", "curl", "setpriv");
const exec = promisify(execFile);
const weir = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "bin", "weir");

const LOOKS = [
  "ip rule",
  "ip -6 rule",
  "ip route show table 2022 2>/dev/null || true",
  "ip -6 route show table 2022 2>/dev/null || true",
];
const tables = ({ router }: Transit) => router.run("nft", "list", "tables");
const reaches = ({ client }: Transit, host: string): Promise<boolean> =>
  curl(client, "--max-time", "1", `http://${host.includes(":") ? `[${host}]` : host}/`).then(
    () => true,
    () => false,
  );
const both = (row: Transit) => Promise.all(FAR.map((host) => reaches(row, host)));

/** Once the neighbours of both families have found each other. */
async function openForwarding(): Promise<Transit> {
  const row = await openTransit("onexit");
  await until("the router forwards", async () => !(await both(row)).includes(false));
  return row;
}

test("closed: an orderly end keeps traffic in, cleanup lets it go", { skip, timeout: 120_000 }, async () => {
  await using row = await openForwarding();
  const { router } = row;
  await using core = await startCore(config(`${MARK_MODE}, on-exit: closed`), { prefix: router.prefix });
  assert.deepEqual(await both(row), [true, true], "by the capture");
  assert.equal(await core.stop("SIGTERM"), 0);
  assert.match(await tables(row), /^table inet svc_guard$/m);
  assert.doesNotMatch(await tables(row), /^table inet svc$/m);
  assert.deepEqual(await both(row), [false, false]);
  assert.equal((await router.run("nft", "list", "table", "inet", "svc_guard")).includes("timeout 1m"), false);
  await router.run(weir, "cleanup", "-keep-closed", "-d", core.home);
  assert.deepEqual(await both(row), [false, false], "the service's own cleaning leaves it");
  await router.run(weir, "cleanup", "-d", core.home);
  assert.doesNotMatch(await tables(row), /svc/);
  assert.deepEqual(await both(row), [true, true]);
});

test(
  "closed: a program without a TUN takes away what one before left",
  { skip, timeout: 120_000 },
  async () => {
    await using row = await openForwarding();
    const { router } = row;
    await using first = await startCore(config(`${MARK_MODE}, on-exit: closed`), { prefix: router.prefix });
    await first.stop("SIGKILL");
    assert.deepEqual(await both(row), [false, false]);
    await router.ip("rule add pref 9001 fwmark 0x99 lookup main"); // another program's
    const left = async () =>
      (await Promise.all(LOOKS.map((look) => router.run("sh", "-c", look)))).join("").split("\n");
    assert.equal((await left()).filter((line) => /^(90|32768)|unreachable/.test(line)).length, 11);
    await using _second = await startCore("mixed-port: 0\nexternal-controller: 127.0.0.1:9091\n", {
      prefix: router.prefix,
    });
    assert.doesNotMatch(await tables(row), /svc/);
    assert.deepEqual(await both(row), [true, true]);
    const rest = (await left()).filter((line) => /^(90|32768)|unreachable/.test(line));
    assert.equal(rest.length, 1, rest.join("\n"));
    assert.match(rest[0] ?? "", /^9001:.*0x99/);
  },
);

test(
  "closed: a TUN that is switched off lets traffic go, flushed rules come back",
  { skip, timeout: 120_000 },
  async () => {
    await using row = await openForwarding();
    const { router } = row;
    await using _core = await startCore(config(`${MARK_MODE}, on-exit: closed`), { prefix: router.prefix });
    await router.run("nft", "flush", "ruleset");
    await until("it is put back", async () => (await tables(row)).includes("svc_guard"));
    assert.match(await patch(row, { tun: { enable: false } }), /204$/);
    assert.doesNotMatch(await tables(row), /svc/);
    assert.deepEqual(await both(row), [true, true]);
  },
);

test(
  "closed: what systemd runs after a crash takes rules and leaves the guard, also with a faulty file",
  { skip, timeout: 120_000 },
  async () => {
    await using row = await openForwarding();
    const { router } = row;
    await using core = await startCore(config(`${MARK_MODE}, on-exit: closed`), {
      prefix: asService(router),
      seed: (home) => chmodSync(home, 0o777),
    });
    await core.stop("SIGKILL");
    const rules = async () => `${await router.run("ip", "rule")}${await router.run("ip", "-6", "rule")}`;
    assert.match(await rules(), /^9000:/m);
    core.write("mode: nonsense\n");
    const [command = "", ...args] = [...asService(router), ...afterStop(core.home)];
    await assert.rejects(exec(command, args), /the configuration has errors/);
    assert.doesNotMatch(await rules(), /^(90\d\d|32768):/m);
    assert.match(await tables(row), /^table inet svc_guard$/m);
    assert.deepEqual(await both(row), [false, false]);
    rmSync(join(core.home, "config.yaml"));
    await assert.rejects(
      router.run(weir, "cleanup", "-d", core.home, "-f", join(core.home, "config.yaml")),
      /config\.yaml/,
    );
    assert.doesNotMatch(await tables(row), /svc/);
    assert.deepEqual(await both(row), [true, true]);
  },
);
