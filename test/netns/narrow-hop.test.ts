/** Clients behind a hop that takes shorter packets than their own network and the router's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { link, openNetns, skipNetns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";
import { FAR, openTransit } from "../support/transit.ts";

const skip = skipNetns("narrow hop");
const BEHIND = [
  { ip: "", network: "203.0.120.0/24", hop: "203.0.113.2", metric: 0 },
  { ip: "-6 ", network: "fd00:20::/64", hop: "fd00:1::2", metric: 1 },
] as const;

/** The row's client is a hop to the client now, and it or the router takes 1,300 bytes on the way there. */
async function openNarrowRow(narrow: "hop" | "router") {
  await using undo = new AsyncDisposableStack();
  const row = undo.use(await openTransit("narrowhop"));
  const { client: hop, router } = row;
  const behind = undo.use(await openNetns("narrowhop-behind"));
  await link(
    { netns: behind, device: "up0", addresses: ["203.0.120.2/24", "fd00:20::2/64"] },
    { netns: hop, device: "down0", addresses: ["203.0.120.1/24", "fd00:20::1/64"] },
  );
  await behind.ip("route add default via 203.0.120.1", "-6 route add default via fd00:20::1");
  for (const key of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"])
    await hop.run("sh", "-c", `echo 1 >/proc/sys/net/${key}`);
  const mtuAt = (place: typeof narrow): string => (place === narrow ? " mtu lock 1300" : "");
  for (const { ip, network, hop: via, metric } of BEHIND) {
    await hop.ip(`${ip}route replace ${network} dev down0 metric ${metric}${mtuAt("hop")}`);
    await router.ip(`${ip}route add ${network} via ${via}${mtuAt("router")}`);
  }
  const owned = undo.move();
  return { ...row, behind, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

for (const [narrow, redirects, gso] of [
  ["hop", false, false],
  ["hop", false, true],
  ["hop", true, false],
  ["router", false, false],
] as const)
  test(`the ${narrow} is narrow, auto-redirect ${redirects}, gso ${gso}`, { skip }, async (t) => {
    await using row = await openNarrowRow(narrow);
    const { behind, router } = row;
    const tun = `auto-route: true, auto-redirect: ${redirects}, auto-detect-interface: ${!redirects}`;
    await using core = await startCore(
      `
ipv6: true
tun: { enable: true, gso: ${gso}, ${tun}, dns-hijack: [] }
rules: ["MATCH,DIRECT"]
`,
      { prefix: router.prefix },
    );
    for (const far of FAR) {
      await t.test(`TCP ${far}`, async () => {
        assert.equal(await row.nearIn(behind, "many", far, 7, 3), "3 echoed");
      });
      await t.test(`UDP ${far}`, async () => {
        const echo = (): Promise<string> => row.nearIn(behind, "udp", far, 7, 1400);
        await echo().catch(() => {}); // the first is lost where nothing is known of the way
        assert.equal(await echo(), "echo of 1400");
      });
    }
    assert.equal(await core.stop(), 0);
  });
