/** Another process takes over from the one that runs, under load. `npm run prove:upgrade` does it hundreds of times. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { listeningSockets } from "../support/listening-sockets.ts";
import { until } from "../support/until.ts";
import { UpgradeWorld } from "../support/upgrade-world.ts";

const skip = process.platform === "linux" ? false : "SKIP upgrade: needs Linux";
const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const LOAD = { lanes: 3, pauseMs: 20, transfers: 6, userLanes: 2 };

test("upgrades under load refuse, break and lose nothing", { skip }, async () => {
  await using world = await UpgradeWorld.open(LOAD);
  for (const to of [WEIR, null, WEIR]) {
    const answer = await world.upgrade(to);
    assert.ok(answer.done, JSON.stringify(answer));
    assert.deepEqual(world.storeOwners(), [world.pid]);
  }
  assert.deepEqual(await world.finish(), []);
  assert.deepEqual(await world.differences(), []);
  assert.ok(world.exchanges > 10 && world.flows > 10, `${world.exchanges} exchanges, ${world.flows} flows`);
});

test("clients that had connected and say so late are served by the one before", { skip }, async () => {
  await using world = await UpgradeWorld.open({ ...LOAD, lanes: 0, userLanes: 0, transfers: 0 });
  const clients = await Promise.all(Array.from({ length: 20 }, () => world.silentClient()));
  const before = world.pid;
  assert.ok((await world.upgrade(null)).done);
  await until("the one before listens by nothing", () => listeningSockets(before) === 0, {
    withinMs: 60_000,
  });
  assert.deepEqual((await Promise.allSettled(clients.map((speak) => speak()))).filter(isRejected), []);
});

const isRejected = ({ status }: PromiseSettledResult<void>): boolean => status === "rejected";

test(
  "the one before listens by nothing, and when all end at once its last counters are written",
  { skip },
  async () => {
    await using world = await UpgradeWorld.open({ ...LOAD, lanes: 0, userLanes: 0 });
    const before = world.pid;
    assert.ok((await world.upgrade(null)).done);
    await until(
      "it serves",
      () => /msg="weir .* is running[^]*msg="weir .* is running/.test(world.core.core.output()),
      {
        withinMs: 300_000,
      },
    );
    await until("the one before listens by nothing", () => listeningSockets(before) === 0, {
      withinMs: 60_000,
    });
    assert.ok(listeningSockets(world.pid) >= 4, "mixed, edge, Controller, portal");
    process.kill(before, "SIGSTOP"); // it comes last
    for (const pid of [world.pid, before]) process.kill(pid, "SIGTERM");
    await until("nothing but the portal is listened by", () => listeningSockets(world.pid) <= 1, {
      withinMs: 60_000,
    });
    process.kill(before, "SIGCONT");
    await world.core.core.exited;
    assert.match(world.core.core.output(), /has given its last counters/);
  },
);
