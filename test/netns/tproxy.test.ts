/** Client – router – origin: TCP and UDP that the router's nftables gives to weir; replies come from where clients wrote to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { capture, checkCapturedTcp, logShown } from "../support/netns-captured.ts";
import { skipNetns } from "../support/netns.ts";
import { FAMILIES, leftovers, openRow } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("tproxy", "nft", "curl");

/** Code point 46, which RFC 3246 calls expedited forwarding. */
const EXPEDITED = `
table inet weir_test {
  chain output {
    type filter hook output priority filter;
    udp dport 9999 ip dscp set ef
    udp dport 9999 ip6 dscp set ef
  }
}
`;

const config = (rules: string, relay = "auto") => `
relay: ${relay}
tproxy-port: 7893
mixed-port: 7890
allow-lan: true
routing-mark: 6666
interface-name: up0
log-level: debug
dns: { enable: true, ipv6: false, nameserver: ["${FAMILIES[0].origin}", "tcp://${FAMILIES[0].origin}"] }
rules: ["DSCP,46,REJECT", ${rules}]
`;

test("captured TCP and UDP reaches where it was going", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openRow("tproxy");
  const { client, router } = row;
  await capture(row, "tproxy");
  await client.nft(EXPEDITED);
  await using core = await startCore(config('"MATCH,DIRECT"'), { prefix: router.prefix });
  const captured = { row, core, by: "tproxy" } as const;
  const curl = (from: typeof client, ...args: readonly string[]) =>
    from.run("curl", "-sS", "--max-time", "15", ...args);
  const sessions = (network: string) =>
    core.output().match(new RegExp(`\\[${network}\\] .*-->`, "g"))?.length ?? 0;

  for (const family of FAMILIES) {
    const { name, router: own, origin, url } = family;
    await t.test(`${name}: a client's request`, async () => {
      assert.match(await curl(client, url), new RegExp(`^hello to (::ffff:)?${origin}$`));
    });
    await checkCapturedTcp(t, captured, family);
    await t.test(`${name}: datagrams of every size come back from where they went`, async () => {
      for (const bytes of [0, 1, 1400, 9_000, 60_000])
        assert.equal(await row.near("udp", origin, 7, bytes), `echo of ${bytes}`);
    });
    await t.test(`${name}: a DNS question`, async () => {
      assert.equal(await row.near("dns", origin), "198.51.100.2");
    });
    await t.test(`${name}: one client socket, two destinations, one session`, async () => {
      assert.equal(await row.near("cone", origin, 50, 7, 9), "7:50 9:50");
    });
    await t.test(`${name}: another host may answer, and is not captured on the way`, async () => {
      await logShown(captured);
      const before = sessions("UDP");
      assert.equal(await row.near("unknownClient", origin, 11), `${origin} 12`);
      await logShown(captured);
      assert.equal(sessions("UDP") - before, 1);
    });
    await t.test(`${name}: a code point that a rule reads`, async () => {
      assert.equal(await row.near("silence", origin, 9999), "silence");
      await logShown(captured);
      assert.match(core.output(), new RegExp(`\\[UDP\\] .*${origin}.*9999.*DSCP`));
    });
    await t.test(`${name}: a datagram to the listener's own address is dropped`, async () => {
      assert.equal(await row.near("silence", own, 7893), "silence"); // and nothing goes round
    });
    await t.test(`${name}: the router's own programs are captured once, weir never`, async () => {
      await logShown(captured);
      const before = [sessions("TCP"), sessions("UDP")] as const;
      assert.match(await curl(router, url), /^hello to /);
      assert.equal(await row.nearIn(router, "udp", origin, 7, 100), "echo of 100");
      await logShown(captured);
      assert.deepEqual([sessions("TCP") - before[0], sessions("UDP") - before[1]], [1, 1]);
    });
  }

  await t.test("questions to DNS upstreams are not captured", async () => {
    await logShown(captured);
    const before = [sessions("TCP"), sessions("UDP")] as const;
    const page = await curl(router, "-x", "http://127.0.0.1:7890", "http://www.origin.test/");
    assert.match(page, /^hello to /);
    await logShown(captured);
    assert.deepEqual([sessions("TCP") - before[0], sessions("UDP") - before[1]], [1, 0]);
  });

  await t.test("a reload keeps sessions, new ones obey the new rules", async () => {
    const [v4] = FAMILIES;
    const held = row.talk("hold", v4.origin, 7);
    const round = async (line: string) => {
      held.say(line);
      assert.deepEqual([await held.nextLine(), await held.nextLine()].toSorted(), [
        `tcp ${line}`,
        `udp 7:${line}`,
      ]);
    };
    await round("one");
    await core.reload(config('"MATCH,REJECT"'));
    await round("two");
    await assert.rejects(curl(client, v4.url));
    await round("three");
    // A listener that changes hands its sockets to its successor.
    await core.reload(`keep-alive-idle: 20\n${config('"MATCH,DIRECT"')}`);
    assert.equal(await row.near("udp", v4.origin, 7, 100), "echo of 100");
    assert.match(await curl(client, v4.url), /^hello to /);
    await round("four");
  });
  assert.doesNotMatch(core.output(), /level=(error|fatal)/);
  assert.equal(await core.stop(), 0);
});

test("relay: portable: captured TCP does, too", { skip, timeout: 120_000 }, async (t) => {
  await using row = await openRow("tproxy");
  await capture(row, "tproxy");
  await using core = await startCore(config('"MATCH,DIRECT"', "portable"), { prefix: row.router.prefix });
  for (const family of FAMILIES) await checkCapturedTcp(t, { row, core, by: "tproxy" }, family);
  assert.doesNotMatch(core.output(), /level=(error|fatal)/);
});

test("nothing is left behind", { skip }, () => assert.deepEqual(leftovers("tproxy"), []));
