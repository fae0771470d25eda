/** The router of docs/router.md: its example as it stands, with the capabilities of its unit, watched from outside. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { asService } from "../support/as-service.ts";
import { skipNetns, type Netns } from "../support/netns.ts";
import { leftovers } from "../support/netns-row.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { CLIENT, FAR, openTransit, ROUTER, talkTo, UPLINK, type Transit } from "../support/transit.ts";
import { until } from "../support/until.ts";

const exec = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const skip = skipNetns("router", "nft", "curl", "ping", "setpriv");
const example = readFileSync(join(root, "examples", "router-tun.yaml"), "utf8");

const start = (row: Transit, text: string): Promise<Core> =>
  startCore(text, { prefix: asService(row.router), seed: (home) => chmodSync(home, 0o777) });

const url = (host: string) => `http://${host.includes(":") ? `[${host}]` : host}/`;
const isTheClients = (line: string) => CLIENT.some((address) => line.includes(` ${address} `));

async function traces(router: Netns): Promise<string> {
  const looks = [
    ["nft", "list", "tables"],
    ["ip", "rule"],
    ["ip", "-6", "rule"],
    ["ip", "-br", "link"],
  ];
  const shown = await Promise.all(looks.map((look) => router.run(...look)));
  return shown
    .flatMap((text) => text.split("\n"))
    .filter((line) => /svc|weir0|^90\d\d|^32768/.test(line))
    .join("\n");
}

test("examples/router-tun.yaml as it stands", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openTransit("router");
  const { client, router, arrivals } = row;
  await using core = await start(row, example);

  await t.test(
    "transparent-proxy §12.1: TCP, UDP and ping of a client in both families go through weir",
    async () => {
      await arrivals.forget();
      for (const host of FAR)
        assert.match(await client.run("curl", "-sS", "--max-time", "5", url(host)), /^hello/);
      for (const host of FAR) assert.equal(await row.near("udp", host, 7, 1200), "echo of 1200");
      for (const host of FAR) await client.run("ping", "-c1", "-W3", host);
      const seen = await arrivals.list();
      assert.deepEqual(seen.filter(isTheClients), []);
      for (const from of UPLINK) {
        assert.ok(seen.includes(`tcp ${from} 80`), `tcp of ${from}`);
        assert.ok(seen.includes(`udp ${from} 7`), `udp of ${from}`);
      }
    },
  );
  await t.test(
    "transparent-proxy §12.5: whatever server a client asks, weir answers with a fake address",
    async () => {
      const servers = [ROUTER[0], ROUTER[1], FAR[0], FAR[1], "192.0.2.53"];
      for (const server of servers) assert.match(await row.near("dns", server), /^198\.18\.0\.\d+$/, server);
      const fake = await row.near("dns", ROUTER[0]);
      assert.match(await client.run("curl", "-sS", "--max-time", "5", url(fake)), /^hello/);
    },
  );
  await t.test("the router's own programs go the same way, its own services stay reachable", async () => {
    for (const host of FAR)
      assert.match(await router.run("curl", "-sS", "--max-time", "5", url(host)), /^hello/);
    for (const host of ROUTER) await client.run("ping", "-c1", "-W3", host);
    assert.match(core.output(), /\[TCP\] 198\.51\.100\.1:\d+.*-->/);
  });
  assert.doesNotMatch(core.output(), /level=(warning|error|fatal)/);

  await t.test(
    "transparent-proxy §12.4: after kill -9 the LAN is online, and cleanup takes what is left",
    async (st) => {
      process.kill(core.pid, "SIGKILL");
      const startedMs = performance.now();
      // What began while the program was dying may hang; a client tries again.
      const online = (host: string) =>
        client.run("curl", "-s", "--max-time", "0.3", url(host)).catch(() => "");
      for (const host of FAR)
        while (!(await online(host)).startsWith("hello")) assert.ok(performance.now() - startedMs < 10_000);
      st.diagnostic(
        `direct over both families ${(performance.now() - startedMs).toFixed(0)} ms after SIGKILL`,
      );
      assert.match(await traces(router), /^table inet svc_guard\n9000/, "fake addresses stay here");
      const program = join(root, "bin", "weir");
      const [command, ...args] = [...asService(router), program, "cleanup", "-d", core.home];
      await exec(command as string, args, { env: { ...process.env, SKIP_SAFE_PATH_CHECK: "" } });
      assert.equal(await traces(router), "");
    },
  );
});

test(
  "no new connection passes weir by, from the start to the stop",
  { skip, timeout: 240_000 },
  async (t) => {
    await using row = await openTransit("steady");
    const { client, router, arrivals } = row;
    // Not before: what began then may go on as it began.
    await using core = await start(row, example);
    await using hammer = talkTo(client, [process.execPath, join(here, "..", "support", "hammer.ts"), ...FAR]);
    const begun = async (word = "?"): Promise<number> => {
      hammer.say(word);
      return Number((await hammer.nextLine()).split(" ")[1]);
    };
    /** Until so many more connections have been begun. */
    const after = async (more: number): Promise<void> => {
      const enough = (await begun()) + more;
      await until(`${more} more connections`, async () => (await begun()) >= enough);
    };
    const first = await begun("last");
    const reload = async (text: string, shown: RegExp): Promise<void> => {
      await core.reload(text, shown);
      await after(20);
    };
    await t.test("reloads: the same, other rules, a bad one", async () => {
      await reload(example, /configuration reloaded/);
      await reload(example.replace("rules:", "rules:\n  - DST-PORT,25,REJECT"), /configuration reloaded/);
      await reload(`${example}\nmode: nonsense\n`, /reload failed/);
      assert.deepEqual((await arrivals.list()).filter(isTheClients), []);
    });
    await t.test("a reload that changes the TUN", async () => {
      await reload(example.replace("device: weir0", "device: weir1"), /configuration reloaded/);
      await reload(example, /configuration reloaded/);
      assert.deepEqual((await arrivals.list()).filter(isTheClients), []);
    });
    t.diagnostic(`${(await begun()) - first} connections and as many datagrams, none past weir`);
    await t.test("another program deletes the device", async () => {
      const before = core.output().length;
      await router.ip("link delete weir0");
      await core.shows(/is made anew/, before);
      await core.shows(/listening on weir0/, before);
      await after(20);
      assert.deepEqual((await arrivals.list()).filter(isTheClients), []);
    });
    await t.test("after the stop everything is direct, and nothing is left", async () => {
      assert.equal(await core.stop(), 0);
      assert.equal(await traces(router), "");
      await arrivals.forget();
      await after(20);
      assert.ok((await arrivals.list()).some((line) => line === `tcp ${CLIENT[0]} 7`));
    });
  },
);

test("nothing is left behind", { skip }, () => {
  for (const label of ["router", "steady"]) assert.deepEqual(leftovers(label), []);
});
