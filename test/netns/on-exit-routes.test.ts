/** `tun.on-exit` where ip rules alone capture: what stays in when weir is gone, what goes on, and what ends it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterStop, asService } from "../support/as-service.ts";
import { skipNetns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";
import { FAR, openTransit, ROUTER, type Transit } from "../support/transit.ts";
import { config, curl, DEVICE, patch, ROUTED } from "../support/tun-row.ts";
import { until } from "../support/until.ts";
import { chmodSync } from "node:fs";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";

const skip = skipNetns("on-exit-routes", "nft", "curl", "setpriv", "bash");
const exec = promisify(execFile);
const weir = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "bin", "weir");
const GUARD = "svc-guard";
const CLOSED = `${ROUTED}, on-exit: closed`;
const FAKES = ["198.18.77.7", "fc00::77"] as const;

const url = (host: string): string => `http://${host.includes(":") ? `[${host}]` : host}/`;
const answers = (asked: Promise<unknown>): Promise<boolean> =>
  asked.then(
    () => true,
    () => false,
  );
const reach = (from: Transit["client"], ...args: readonly string[]) =>
  Promise.all(FAR.map((host) => answers(curl(from, "--max-time", "2", ...args, url(host)))));
const left = async ({ router }: Transit): Promise<readonly string[]> => {
  const looks = ["ip rule", "ip -6 rule", "ip -br link", "ip route show table 2022 2>/dev/null || true"];
  const shown = await Promise.all(looks.map((look) => router.run("sh", "-c", look)));
  return shown
    .flatMap((text) => text.split("\n"))
    .filter((line) => /^90\d\d:|svc-guard|weir-tun0/.test(line));
};

async function openForwarding(): Promise<Transit> {
  const row = await openTransit("exitroutes");
  await until("the router forwards", async () => !(await reach(row.client)).includes(false));
  return row;
}

test(
  "closed: kill -9 keeps in what was captured, and that alone, until cleanup",
  { skip, timeout: 300_000 },
  async () => {
    await using row = await openForwarding();
    const { client, router } = row;
    await using core = await startCore(config(CLOSED), {
      prefix: asService(router),
      seed: (home) => chmodSync(home, 0o777),
    });
    await until("by the capture", async () => !(await reach(client)).includes(false));
    assert.doesNotMatch(core.output(), /not kept in/);
    await core.stop("SIGKILL");
    assert.deepEqual(await reach(client), [false, false]);
    assert.deepEqual(await reach(router), [false, false], "the router's own programs");
    assert.deepEqual(await reach(router, "--interface", "if!up0"), [true, true], "was not captured either");
    assert.match(await client.run("ping", "-c", "1", "-W", "5", ROUTER[0]), /1 received/);
    const [command = "", ...args] = [...asService(router), ...afterStop(core.home)];
    await exec(command, args);
    assert.deepEqual(await reach(client), [false, false], "the service's own cleaning leaves it");
    await router.run(weir, "cleanup", "-d", core.home);
    assert.deepEqual(await left(row), []);
    assert.deepEqual(await reach(client), [true, true]);
  },
);

test(
  "closed: the next start takes over, a changed choice lets go, and so does a program without a TUN",
  { skip, timeout: 300_000 },
  async () => {
    await using row = await openForwarding();
    const { client, router } = row;
    const started = (text: string) => startCore(text, { prefix: router.prefix });
    {
      await using first = await started(config(CLOSED));
      await first.stop("SIGKILL");
    }
    assert.deepEqual(await reach(client), [false, false]);
    {
      await using second = await started(config(CLOSED));
      await until("by the capture", async () => !(await reach(client)).includes(false));
      assert.match(await patch(row, { tun: { "on-exit": "open" } }), /204$/);
      await second.stop("SIGKILL");
    }
    assert.deepEqual(await reach(client), [true, true]);
    assert.deepEqual(
      (await left(row)).filter((line) => !/^90\d\d:/.test(line)),
      [],
    );
    {
      await using third = await started(config(CLOSED));
      await third.stop("SIGTERM");
    }
    assert.deepEqual(await reach(client), [false, false], "an orderly end");
    await using _last = await started("mixed-port: 0\nexternal-controller: 127.0.0.1:9091\n");
    assert.deepEqual(await left(row), []);
    assert.deepEqual(await reach(client), [true, true]);
  },
);

test("open: after a kill fake addresses alone are refused", { skip, timeout: 300_000 }, async () => {
  await using row = await openForwarding();
  const { client, router, origin } = row;
  await origin.ip(`address add ${FAKES[0]}/32 dev lo`, `address add ${FAKES[1]}/128 dev lo nodad`);
  const fakes = (from: Transit["client"]) =>
    Promise.all(FAKES.map((host) => answers(curl(from, "--max-time", "2", url(host)))));
  assert.deepEqual(await fakes(client), [true, true], "without us they leave");
  const text = config(ROUTED).replace("redir-host", "fake-ip, fake-ip-range6: fc00::/64");
  await using core = await startCore(text, { prefix: router.prefix });
  await core.stop("SIGKILL");
  assert.deepEqual(await reach(client), [true, true]);
  assert.deepEqual([...(await fakes(client)), ...(await fakes(router))], [false, false, false, false]);
  await router.run(weir, "cleanup", "-keep-closed", "-d", core.home);
  assert.deepEqual(await fakes(client), [false, false], "as the service's own cleaning leaves it");
  await router.run(weir, "cleanup", "-d", core.home);
  assert.deepEqual(await left(row), []);
  assert.deepEqual(await fakes(client), [true, true]);
});

test(
  "another program deletes the TUN, or the guard routes: nothing leaves, and both come back",
  { skip, timeout: 300_000 },
  async () => {
    await using row = await openForwarding();
    const { client, router, arrivals } = row;
    await using core = await startCore(config(ROUTED), { prefix: router.prefix });
    await until("by the capture", async () => !(await reach(client)).includes(false));
    await router.ip(`link del ${GUARD}`);
    await until("it is back", async () =>
      (await left(row)).some((line) => line.startsWith(`default dev ${GUARD}`)),
    );
    await arrivals.forget();
    await router.ip(`link del ${DEVICE}`);
    const sends = FAR.map((host) => `echo x >/dev/udp/${host}/9`).join("; ");
    await client.run("bash", "-c", `for at in {1..100}; do ${sends}; sleep 0.02; done`);
    await until("by the capture again", async () => !(await reach(client)).includes(false));
    assert.deepEqual(
      (await arrivals.list()).filter((line) => line.includes("203.0.113.")),
      [],
    );
    assert.equal(await core.stop("SIGTERM"), 0);
    assert.deepEqual(await left(row), []);
  },
);
