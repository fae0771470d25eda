/** What the firewall redirects gets no further than what asks the proxy: by fake addresses, by names inside, at own addresses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { capture, CAPTURES, RELAYS, type Capture } from "../support/netns-captured.ts";
import { openRoutedRow } from "../support/netns-far-away.ts";
import type { Ask } from "../support/netns-reach.ts";
import { openWorld, SERVICE, textsOf } from "../support/netns-reach-world.ts";
import { skipNetns } from "../support/netns.ts";
import { manual, ROUTER } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("reach", "nft");
const CONTROLLER = 9090;
const DNS = [ROUTER[0], 53] as const;
const FAR_AWAY = ["198.51.100.2", SERVICE] as const;

/** Of this machine only, and of the world. */
const LOCAL = ["loop.test", "zero.test", "local.test", "host.test"];
const WORLD = ["both.test", "far.test", "private.test"];

const config = (relay: string, by: Capture) => `
relay: ${relay}
${by}-port: ${CAPTURES[by]}
allow-lan: true
routing-mark: 6666
external-controller: 0.0.0.0:${CONTROLLER}
log-level: debug
hosts: { host.test: 127.0.0.1 }
dns: { enable: true, listen: "0.0.0.0:53", enhanced-mode: fake-ip, nameserver: ["127.0.0.1:5353"] }
sniffer: { enable: true, force-dns-mapping: false, parse-pure-ip: true, override-destination: true, sniff: { HTTP: { ports: [${SERVICE}] } } }
rules: ["MATCH,DIRECT"]
`;

const named = (hosts: readonly string[]): Ask[] =>
  hosts.map((host): Ask => ({ by: "named", proxy: FAR_AWAY, host, port: SERVICE }));

/** The rules of the manual without the line that lets the router's own addresses pass. */
const careless = (by: Capture): string =>
  `delete table inet weir_${by}\n${manual(by, "nft").replaceAll(/^.*fib daddr type.*$/gm, "    iifname lo return")}`;

for (const by of ["redir", "tproxy"] as const)
  for (const relay of RELAYS)
    test(
      `${by}, relay: ${relay}: a client of the LAN reaches nothing of the machine`,
      { skip, timeout: 120_000 },
      async (t) => {
        await using world = await openWorld(`reach-${by}`, openRoutedRow);
        const { client, router } = world.row;
        await capture(world.row, by);
        await using core = await startCore(config(relay, by), { prefix: router.prefix });
        const ways = by === "tproxy" ? (["plain", "plain-udp"] as const) : (["plain"] as const);
        const plain = (hosts: readonly string[], port = SERVICE): Ask[] =>
          hosts.flatMap((host) => ways.map((way): Ask => ({ by: way, proxy: DNS, host, port })));

        await t.test("by fake addresses", async () => {
          const world_ = plain(WORLD);
          assert.deepEqual(await world.ask(client, [...plain(LOCAL), ...world_]), textsOf(world_));
          await core.shows(/loop\.test:8080 .*127\.0\.0\.1:8080 is an address of this machine only/);
        });
        await t.test("by a name in a request to somewhere else", async () => {
          const far = named(WORLD);
          assert.deepEqual(await world.ask(client, [...named(LOCAL), ...far]), textsOf(far));
        });
        await t.test("a program of the machine reaches its services by both", async () => {
          const asks = [
            ...plain(["loop.test", "host.test", "far.test"]),
            ...named(["loop.test", "far.test"]),
          ];
          assert.deepEqual(await world.ask(router, asks), textsOf(asks));
        });
        await t.test("nor its own listeners, where the rules redirect these addresses, too", async () => {
          await router.nft(careless(by));
          const own = [ROUTER[0], "10.255.0.1", "169.254.1.1"];
          const asks = own.flatMap((host) =>
            [CONTROLLER, CAPTURES[by]].map((port): Ask => ({ by: "plain", proxy: DNS, host, port })),
          );
          assert.deepEqual(await world.ask(client, asks), []);
          await core.shows(/203\.0\.113\.1:9090 .*(own|itself|weir)/);
          const far = named(["far.test"]);
          assert.deepEqual(await world.ask(client, far), textsOf(far));
        });
        assert.doesNotMatch(core.output(), /level=(error|fatal)/);
      },
    );
