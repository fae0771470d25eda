/** Many flows and much data through a TUN. The amounts of the specification: WEIR_TUN_FLOWS=100000 WEIR_TUN_MIB=1024. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { skipNetns } from "../support/netns.ts";
import { openRoutedRow } from "../support/netns-far-away.ts";
import { FAMILIES, talkTo } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("tun load");
const FLOWS = Number(process.env["WEIR_TUN_FLOWS"] ?? 2000);
const MIB = Number(process.env["WEIR_TUN_MIB"] ?? 24);
const KEPT = 20;

const support = join(dirname(dirname(fileURLToPath(import.meta.url))), "support");
const script = (name: string, ...args: readonly string[]) => [
  process.execPath,
  "--disable-warning=ExperimentalWarning",
  join(support, name),
  ...args,
];

interface Figures {
  readonly accepted: number;
  readonly reused: number;
  readonly wrong: number;
  readonly open: number;
  readonly natSize: number;
}

test(`transparent-proxy §12 line 7: ${FLOWS} short flows`, { skip, timeout: 600_000 }, async (t) => {
  await using row = await openRoutedRow("tunflows");
  await using undo = new AsyncDisposableStack();
  const { client, router } = row;
  const tun = talkTo(router, script("netns-tun.ts", "weir-tun0"), undo);
  await tun.nextLine();
  await router.ip("route add 198.51.100.0/24 dev weir-tun0", "-6 route add fd00:2::/64 dev weir-tun0");
  const figures = async (line: string): Promise<Figures> => {
    tun.say(line);
    return JSON.parse(await tun.nextLine()) as Figures;
  };
  for (const { name, origin } of FAMILIES) {
    const count = name === "IPv4" ? FLOWS : Math.min(FLOWS, 2000);
    const before = await figures("now");
    const kept = talkTo(client, script("netns-bulk.ts", "keep", origin, String(KEPT)), undo);
    await kept.nextLine();
    const startedAtMs = performance.now();
    assert.equal(
      (await client.run(...script("netns-bulk.ts", "flows", origin, String(count)))).trim(),
      `${count} good`,
    );
    const seconds = (performance.now() - startedAtMs) / 1000;
    const now = await figures("now");
    t.diagnostic(`${name}: ${count} flows in ${seconds.toFixed(1)} s; ${JSON.stringify(now)}`);
    assert.equal(now.accepted - before.accepted, count + KEPT);
    assert.deepEqual([now.reused, now.wrong], [0, 0]);
    kept.say("still there");
    assert.equal(await kept.nextLine(), "ok");
    await figures("later");
    while ((await figures("now")).natSize > KEPT) await new Promise((resolve) => setTimeout(resolve, 200));
    kept.say("after a minute");
    assert.equal(await kept.nextLine(), "ok");
    kept.close();
    while ((await figures("now")).open > 0) await new Promise((resolve) => setTimeout(resolve, 50));
    await figures("later");
    while ((await figures("now")).natSize > 0) await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

for (const gso of [true, false])
  test(
    `transparent-proxy §12 line 8: ${MIB} MiB both ways, gso ${gso}`,
    { skip, timeout: 600_000 },
    async (t) => {
      await using row = await openRoutedRow("tungso");
      await using undo = new AsyncDisposableStack();
      const { client, router, origin } = row;
      const far = talkTo(origin, script("netns-bulk.ts", "serve"), undo);
      await far.nextLine();
      await using core = await startCore(
        `
tun: { enable: true, device: weir-tun0, stack: system, mtu: 1500, gso: ${gso}, auto-route: true }
dns: { enable: true, nameserver: ["198.51.100.2"] }
rules: ["MATCH,DIRECT"]
`,
        { prefix: router.prefix },
      );
      for (const { name, origin: host } of FAMILIES)
        for (const way of ["up", "down"]) {
          const startedAtMs = performance.now();
          const mib = name === "IPv4" ? MIB : Math.min(MIB, 24);
          assert.equal((await client.run(...script("netns-bulk.ts", way, host, String(mib)))).trim(), "same");
          const seconds = (performance.now() - startedAtMs) / 1000;
          t.diagnostic(`${name} ${way}: ${mib} MiB in ${seconds.toFixed(1)} s`);
        }
      assert.equal(await row.near("udp", FAMILIES[0].origin, 7, 1400), "echo of 1400");
      assert.equal(await core.stop(), 0);
    },
  );
