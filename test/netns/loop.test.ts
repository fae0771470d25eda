/** A router whose rules forgot that weir's own packets must pass: what it dials comes back to it, and goes round once. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { MOST_HOPS } from "#net/dial/self-dials.ts";
import { capture, CAPTURES, RELAYS, type Capture } from "../support/netns-captured.ts";
import { skipNetns, type Netns } from "../support/netns.ts";
import { FAMILIES, openRow } from "../support/netns-row.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = skipNetns("loop", "nft", "curl");

/** Of one request: that many hops through weir's own listeners are allowed, each perhaps seen once more. */
const MOST_ROUNDS = 2 * (MOST_HOPS + 1);

/** Without the `routing-mark` that the rules let pass. */
const config = (relay: string, by: Capture) => `
relay: ${relay}
${by}-port: ${CAPTURES[by]}
mixed-port: 7890
allow-lan: true
log-level: debug
dns: { enable: true, nameserver: ["${FAMILIES[0].origin}"] }
rules: ["MATCH,DIRECT"]
`;

const count = (core: Core, pattern: RegExp): number => core.output().match(pattern)?.length ?? 0;
const looped = (core: Core, network: string) =>
  count(core, new RegExp(`\\[${network}\\].*a loop: .* is a socket of DIRECT`, "g"));
const loops = (core: Core) => count(core, /a loop: /g);
const sessions = (core: Core, network: string) =>
  count(core, new RegExp(`\\[${network}\\] .*--> \\S+ match`, "g"));

/** The ports from which connections are dialled from now on. */
const usePorts = ({ run }: Netns, range: string): Promise<string> =>
  run("sysctl", "-qw", `net.ipv4.ip_local_port_range=${range}`);

test("a datagram that comes back is refused", { skip, timeout: 60_000 }, async () => {
  await using row = await openRow("loop");
  await capture(row, "tproxy");
  await using core = await startCore(config("auto", "tproxy"), { prefix: row.router.prefix });
  assert.equal(await row.near("silence", FAMILIES[0].origin, 7), "silence");
  await core.shows(/\[UDP\].*a loop: .* is a socket of DIRECT/);
  assert.deepEqual([looped(core, "UDP"), sessions(core, "UDP")], [1, 1]);
  assert.equal(await core.stop(), 0);
});

for (const by of ["tproxy", "redir"] as const)
  for (const relay of RELAYS)
    test(
      `relay: ${relay}, ${by}: a connection that comes back is refused`,
      { skip, timeout: 60_000 },
      async () => {
        await using row = await openRow("loop");
        const { client, router } = row;
        await capture(row, by);
        await usePorts(router, "32768 46000");
        await using core = await startCore(config(relay, by), { prefix: router.prefix });
        // None where the refusal comes before the thread has seen that it is connected. By the event loop one round more, where two readinesses of the kernel did not come in the same turn.
        const most = relay === "auto" ? 1 : 3;
        let asked = 0;
        const goesRound = async (asking: Promise<string>): Promise<void> => {
          const refused = looped(core, "TCP");
          asked++;
          await assert.rejects(asking);
          await until("a refusal", () => looped(core, "TCP") > refused);
          const rounds = sessions(core, "TCP"); // of all up to now: a line may come behind the refusal of its connection
          assert.ok(rounds <= asked * most, `${rounds} rounds of ${asked}: ${core.output()}`);
        };
        const curl = (from: typeof client, ...args: readonly string[]) =>
          from.run("curl", "-sS", "--max-time", "10", ...args);
        for (const { url } of FAMILIES) {
          await goesRound(curl(client, url));
          await goesRound(curl(router, url)); // a program of its own, from an address of its own
          // By a listener that captures nothing: its dial comes back, too.
          await goesRound(curl(router, "-x", "http://127.0.0.1:7890", "-p", url));
        }
        // One thread dials while another accepts. A redirected connection whose port was another's gets a new one, and its
        // round is not seen: these have ports that none had before.
        await usePorts(router, "46001 60999");
        asked += 100;
        assert.equal(await row.near("ends", FAMILIES[0].origin, 7, 100), "100 ended");
        const rounds = sessions(core, "TCP");
        assert.ok(rounds <= asked * most, `${rounds} rounds of ${asked}`);
        assert.equal(await core.stop(), 0);
      },
    );

/** The group's member is a node far away, and what is dialled to it comes back, too; so does what workers dial to `sealed`. */
const throughNode = (by: Capture) => `
${by}-port: ${CAPTURES[by]}
mixed-port: 7890
external-controller: 127.0.0.1:9090
allow-lan: true
log-level: debug
proxies:
  - { name: far, type: socks5, server: ${FAMILIES[0].origin}, port: 1080 }
  - { name: behind, type: http, server: ${FAMILIES[0].origin}, port: 1081, dialer-proxy: far }
  - { name: sealed, type: ss, server: ${FAMILIES[0].origin}, port: 1082, cipher: aes-128-gcm, password: p }
proxy-groups:
  - { name: Group, type: select, proxies: [far] }
  - { name: Chain, type: fallback, proxies: [behind], interval: 0, url: "http://${FAMILIES[0].origin}/" }
rules: ["DST-PORT,80,Group", "DST-PORT,81,Chain", "DST-PORT,82/1082,sealed", "MATCH,Group"]
`;

for (const by of ["tproxy", "redir"] as const)
  test(
    `${by}: a node whose connections come back, in groups and chains, ends within a few hops`,
    { skip, timeout: 60_000 },
    async () => {
      await using row = await openRow("loop");
      const { client, router } = row;
      await capture(row, by);
      await using core = await startCore(throughNode(by), { prefix: router.prefix });
      const descriptors = (): number => readdirSync(`/proc/${core.pid}/fd`).length;
      const before = descriptors();
      const [{ origin }] = FAMILIES;
      for (const port of [80, 81, 82]) {
        const url = `http://${origin}:${port}/`;
        const [refused, begun] = [loops(core), sessions(core, "TCP")];
        await assert.rejects(client.run("curl", "-sS", "--max-time", "10", url));
        await assert.rejects(
          router.run("curl", "-sS", "--max-time", "10", "-x", "http://127.0.0.1:7890", "-p", url),
        );
        await until("both are refused", () => loops(core) >= refused + 2);
        const rounds = sessions(core, "TCP") - begun;
        assert.ok(rounds <= 2 * MOST_ROUNDS, `${rounds} rounds to port ${port}`);
      }
      await until("its descriptors are free again", () => descriptors() <= before + 5);
      assert.match(await router.run("curl", "-sS", "http://127.0.0.1:9090/version"), /version/);
      assert.equal(await core.stop(), 0);
    },
  );
