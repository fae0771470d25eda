/** An upgrade that fails changes nothing, wherever it fails; and when the old process is killed in the middle the new one serves. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { DEATHS, FailingLaunchers } from "../support/failing-launchers.ts";
import { until } from "../support/until.ts";
import { UpgradeWorld } from "../support/upgrade-world.ts";

const skip = process.platform === "linux" ? false : "SKIP upgrade: needs Linux";
const LOAD = { lanes: 2, pauseMs: 30, transfers: 3, userLanes: 1 };

test("a new process that fails changes nothing", { skip }, async () => {
  using launchers = new FailingLaunchers();
  const launcher = (step: string): string => launchers.path(step);
  await using world = await UpgradeWorld.open(LOAD);
  const { pid } = world;
  const fails = async (to: string | null, why: RegExp): Promise<void> => {
    const answer = await world.upgrade(to);
    assert.ok(!answer.done, `${to} has taken over`);
    assert.match(answer.reason, why);
    await until("the new process has ended", () => world.processes().length === 1);
    assert.deepEqual(world.storeOwners(), [pid]);
  };
  await fails("/nowhere/weir", /ENOENT/);
  await fails("/bin/true", /it has ended \(ended with code 0\)/);
  await fails(launcher("nonsense"), /not to be taken/);
  await fails(launcher("other-protocol"), /other-protocol takes over by protocol 3, this is 2/);
  await fails(launcher("older"), /older and would lose of managed users: listeners/);
  await fails(
    launcher("newer"),
    /keeps what this version could not read if it failed: managed users: invented/,
  );
  for (const step of DEATHS) await fails(launcher(step), /it has ended \(ended with SIGKILL\)/);

  const file = join(world.core.core.home, "config.yaml");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("MATCH,DIRECT", "MATCH,NOWHERE"));
  await fails(null, /NOWHERE/);
  await using taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  writeFileSync(file, `${text}\nsocks-port: ${port}\n`); // which shows when the stores are the new process's
  await fails(null, /EADDRINUSE|address already in use|in use/);
  writeFileSync(file, `${text}\ntun: { enable: true }\n`);
  await fails(null, /tun/);
  writeFileSync(file, text);

  await world.core.create("edge", "made afterwards");
  assert.deepEqual(await world.finish(), []);
  assert.deepEqual(await world.differences(), []);
});

test("an old process that is killed in the middle is replaced all the same", { skip }, async () => {
  await using world = await UpgradeWorld.open({ ...LOAD, lanes: 0, userLanes: 0, transfers: 0 });
  const { pid } = world;
  const asked = world.upgrade(null).catch((error: unknown) => error);
  await until("the stores are let go of", () => !world.storeOwners().includes(pid), {
    everyMs: 2,
    withinMs: 300_000,
  });
  process.kill(pid, "SIGKILL");
  await asked;
  await world.core.core.shows(/has died; this one takes its place/);
  assert.deepEqual(await world.exchangeOnce(), 1);
  await world.core.create("edge", "made by the new process");
  assert.notDeepEqual(world.processes(), [pid]);
});

test(
  "an end that is asked for in the middle ends both, and what was counted is written",
  { skip },
  async () => {
    using launchers = new FailingLaunchers();
    await using world = await UpgradeWorld.open({ ...LOAD, lanes: 0, userLanes: 0, transfers: 0 });
    const { core } = world.core;
    const asked = world.upgrade(launchers.path("silent")).catch((error: unknown) => error);
    await until("the stores are let go of", () => world.storeOwners().length === 0, {
      everyMs: 2,
      withinMs: 300_000,
    });
    process.kill(world.pid, "SIGTERM");
    assert.equal(await core.exited, 0); // its output ends with the last of both
    await asked;
    assert.match(core.output(), /nothing has changed: weir was asked to end/);
    assert.match(core.output(), /users\.db: open again/);
  },
);

test(
  "a configuration that changes in the middle ends the upgrade: the new process knows another",
  { skip },
  async () => {
    using launchers = new FailingLaunchers();
    await using world = await UpgradeWorld.open({ ...LOAD, lanes: 0, userLanes: 0, transfers: 0 });
    const { core } = world.core;
    const asked = world.upgrade(launchers.path("late"));
    await core.shows(/upgrade: starting/);
    await core.reload();
    writeFileSync(join(core.home, "go-on"), "");
    const answer = await asked;
    assert.ok(!answer.done);
    assert.match(answer.reason, /configuration has changed meanwhile/);
  },
);
