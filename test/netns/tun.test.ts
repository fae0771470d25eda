/** Client – router with a TUN – origin: what the router's kernel is told to bring to weir reaches where it was going. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { isPlainlyConnected, openRoutedRow } from "../support/netns-far-away.ts";
import { FAMILIES, type Row } from "../support/netns-row.ts";
import { startCore, type Core } from "../support/start-core.ts";
import {
  config,
  controller,
  curl,
  DEVICE,
  logged,
  MARK_MODE,
  patch,
  ROUTED,
  sessions,
  skip,
  traces,
  tunOf,
  v4,
} from "../support/tun-row.ts";
import { until } from "../support/until.ts";

const SECOND_CLIENT = "203.0.113.3";

/** What leaves the router towards name servers, with the mark and without. */
const MARKS = `
table inet weir_marks {
  set marked { type inet_proto . inet_service; flags dynamic; size 64; }
  set unmarked { type inet_proto . inet_service; flags dynamic; size 64; }
  chain out {
    type filter hook output priority 300;
    oifname != "up0" accept
    meta l4proto != { tcp, udp } accept
    th dport != { 53, 443, 853 } accept
    meta mark 0x2024 update @marked { meta l4proto . th dport }
    meta mark != 0x2024 update @unmarked { meta l4proto . th dport }
  }
}
`;

/** transparent-proxy §12 line 1 and §6: all that a client can do, in both families. */
async function carries(t: TestContext, row: Row, core: Core, takesOwnQuestions: boolean): Promise<void> {
  const { client, router } = row;
  for (const { name, router: own, origin, url } of FAMILIES) {
    await t.test(`${name}: a client's request`, async () => {
      const before = sessions(core, "TCP");
      assert.match(await curl(client, url), new RegExp(`^hello to (::ffff:)?${origin}$`));
      await logged(core, "TCP", before + 1);
    });
    await t.test(`${name}: 200 connections at once`, async () => {
      assert.equal(await row.near("many", origin, 7, 200), "200 echoed");
    });
    await t.test(`${name}: datagrams come back from where they went`, async () => {
      const before = sessions(core, "UDP");
      for (const bytes of [0, 1, 1400])
        assert.equal(await row.near("udp", origin, 7, bytes), `echo of ${bytes}`);
      await logged(core, "UDP", before + 3);
    });
    await t.test(`${name}: one client socket, two destinations, one session`, async () => {
      assert.equal(await row.near("cone", origin, 50, 7, 9), "7:50 9:50");
    });
    await t.test(`${name}: replies that go as one arrive as what they were`, async () => {
      assert.equal(await row.near("burst", origin, 7, 60), "60 of 60 in order");
      assert.equal(await row.nearIn(router, "burst", origin, 7, 60), "60 of 60 in order");
    });
    await t.test(`${name}: another host may answer`, async () => {
      assert.equal(await row.near("unknownClient", origin, 11), `${origin} 12`);
    });
    await t.test(
      `${name}: transparent-proxy §12 line 5: questions are answered, whichever server they are for`,
      async () => {
        const silent = name === "IPv4" ? "192.0.2.53" : "2001:db8::53";
        for (const server of takesOwnQuestions ? [origin, silent, own] : [origin, silent])
          assert.equal(await row.near("dns", server), "198.51.100.2", server);
        assert.equal(await row.near("dnstcp", silent), "198.51.100.2");
      },
    );
    await t.test(`${name}: a ping reaches its destination, and no other host answers for it`, async () => {
      const silent = name === "IPv4" ? "198.51.100.99" : "fd00:2::99";
      const ping = (to: string) => client.run("sh", "-c", `ping -n -c 2 -i 0.05 -W 1 ${to} || true`);
      assert.match(await ping(origin), new RegExp(`from ${origin}: [^]* 2 received`));
      assert.match(await ping(silent), / 0 received/);
    });
    await t.test(`${name}: the router's own programs`, async () => {
      assert.match(await curl(router, url), /^hello to /);
    });
  }
}

test(
  "transparent-proxy §12 line 1: auto-redirect and TUN of a router",
  { skip, timeout: 180_000 },
  async (t) => {
    await using row = await openRoutedRow("tunredir");
    const { client, router } = row;
    await client.ip(`address add ${SECOND_CLIENT}/24 dev up0`);
    const refusing =
      '"AND,((NETWORK,UDP),(DST-PORT,40)),REJECT", "AND,((NETWORK,UDP),(DST-PORT,41)),REJECT-DROP"';
    const rules = [
      refusing,
      '"SRC-PORT,23456,REJECT"',
      `"SRC-IP-CIDR,${SECOND_CLIENT}/32,REJECT"`,
      '"MATCH,DIRECT"',
    ];
    await using core = await startCore(config(MARK_MODE, rules.join()), { prefix: router.prefix });
    await carries(t, row, core, true);

    await t.test(
      "transparent-proxy §6.2: a refused client gets a reply, a dropped one does not",
      async () => {
        for (const { origin } of FAMILIES) {
          assert.equal(await row.near("refused", origin, 40), "ECONNREFUSED", origin);
          assert.equal(await row.nearIn(router, "refused", origin, 40), "ECONNREFUSED", origin);
          assert.equal(await row.near("refused", origin, 41), "silence", origin);
        }
      },
    );

    await t.test("rules see the source address", async () => {
      await assert.rejects(curl(client, "--local-port", "23456", v4.url));
      assert.match(await curl(client, "--local-port", "23457", v4.url), /^hello/);
      await assert.rejects(curl(client, "--interface", SECOND_CLIENT, v4.url));
      assert.match(core.output(), /using REJECT/);
    });

    await t.test("dns §16 line 12: every packet to an upstream carries the output mark", async () => {
      await router.nft(MARKS);
      const upstreams = ["udp://IP", "tcp://IP", "tls://IP", "https://IP/dns-query"].map(
        (url, at) => `"+.kind${at}.test": "${url.replace("IP", v4.origin)}"`,
      );
      const policy = `nameserver-policy: { ${upstreams.join(", ")} }, nameserver`;
      await core.reload(config(MARK_MODE).replace("nameserver", policy));
      // No server speaks TLS there: what counts is what leaves.
      const asked = upstreams.map((_, at) => row.near("dns", v4.origin, at).catch(() => ""));
      const seen = async (set: string) => {
        const text = await router.run("nft", "-j", "list", "set", "inet", "weir_marks", set);
        const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: { concat: unknown[] }[] } }[] };
        return nftables
          .flatMap((entry) => entry.set?.elem?.map(({ concat }) => concat.join(" ")) ?? [])
          .toSorted((left, right) => left.localeCompare(right));
      };
      await until("four kinds", async () => (await seen("marked")).length >= 4);
      assert.deepEqual(await seen("marked"), ["tcp 443", "tcp 53", "tcp 853", "udp 53"]);
      assert.deepEqual(await seen("unmarked"), []);
      await Promise.all(asked);
      await router.nft("delete table inet weir_marks");
    });

    await t.test(
      "transparent-proxy §12 line 4: kill -9, and everybody goes on by themselves within a second",
      async () => {
        process.kill(core.pid, "SIGKILL");
        await core.exited;
        const killedAt = performance.now();
        while (!(await isPlainlyConnected(row)))
          assert.ok(performance.now() - killedAt < 1000, "within a second");
        const left = await traces(row);
        assert.deepEqual(
          left.filter((line) => /table inet|weir-tun0/.test(line)),
          [],
        );
        await using again = await startCore(config(MARK_MODE), { prefix: router.prefix });
        assert.match(await curl(client, v4.url), /^hello/);
        const seen = await router.run("ip", "rule");
        const priorities = seen
          .split("\n")
          .map((line) => line.split("\t")[0])
          .filter((at) => at !== "");
        assert.equal(new Set(priorities).size, priorities.length, seen);
        assert.equal(await again.stop(), 0);
      },
    );

    await t.test("an orderly stop leaves nothing and keeps no client waiting", async () => {
      const stoppedAt = performance.now();
      while (!(await isPlainlyConnected(row)))
        assert.ok(performance.now() - stoppedAt < 1000, "within a second");
      assert.deepEqual(await traces(row), []);
    });
  },
);

test("transparent-proxy §6: everything through the device", { skip, timeout: 180_000 }, async (t) => {
  await using row = await openRoutedRow("tunrouted");
  const { router } = row;
  await using core = await startCore(config(ROUTED), { prefix: router.prefix });
  await carries(t, row, core, false);
  const index = async () => (await router.run("cat", `/sys/class/net/${DEVICE}/ifindex`)).trim();

  await t.test("no client gets in by the port of the stack's listener", async () => {
    const listening = await router.run("ss", "-Hltn", "src", "198.18.0.1");
    const port = Number(/198\.18\.0\.1:(\d+)/.exec(listening)?.[1]);
    assert.equal(await row.near("end", "198.18.0.1", port), "ECONNRESET");
  });

  await t.test("GET /configs shows what runs", async () => {
    const tun = await tunOf(row);
    assert.deepEqual([tun["enable"], tun["device"], tun["stack"]], [true, DEVICE, "System"]);
  });

  await t.test("a reload that leaves the TUN alone keeps the device and what goes through it", async () => {
    const before = await index();
    const held = row.talk("hold", v4.origin, 7);
    const round = async (line: string) => {
      held.say(line);
      assert.deepEqual([await held.nextLine(), await held.nextLine()].toSorted(), [
        `tcp ${line}`,
        `udp 7:${line}`,
      ]);
    };
    await round("one");
    await core.reload(config(ROUTED, '"DST-PORT,80,REJECT","MATCH,DIRECT"'));
    await round("two");
    await assert.rejects(curl(row.client, v4.url));
    assert.equal(await index(), before);
    await core.reload(config(ROUTED));
    await round("three");
  });

  await t.test(
    "kernel-direct §1.3: a change makes the TUN anew; one that fails puts the old one back",
    async () => {
      const before = await index();
      assert.match(await patch(row, { tun: { mtu: 1400 } }), /204$/);
      assert.notEqual(await index(), before);
      assert.equal((await tunOf(row))["mtu"], 1400);
      assert.match(await curl(row.client, v4.url), /^hello/);
      const answer = await patch(row, { tun: { device: "a-name-that-is-too-long" }, mode: "direct" });
      assert.match(answer, /tun\.device[^]*500$/);
      assert.equal((await tunOf(row))["device"], DEVICE);
      assert.match(await controller(row, "/configs"), /"mode":"rule"/);
      assert.match(await curl(row.client, v4.url), /^hello/);
    },
  );

  await t.test("a device that another program deletes is made anew", async () => {
    const before = core.output().length;
    await router.ip(`link delete ${DEVICE}`);
    for (const said of [/another program has deleted the device/, /is made anew/, /DEFAULT-TUN listening/])
      await core.shows(said, before);
    assert.match(await curl(row.client, v4.url), /^hello/);
    assert.equal(await row.near("udp", v4.origin, 7, 100), "echo of 100");
  });

  await t.test("switched off, traffic goes by itself; switched on again, through weir", async () => {
    assert.match(await patch(row, { tun: { enable: false } }), /204$/);
    assert.equal((await tunOf(row))["enable"], false);
    assert.deepEqual(await traces(row), []);
    assert.ok(await isPlainlyConnected(row));
    assert.match(await patch(row, { tun: { enable: true } }), /204$/);
    const before = sessions(core, "TCP");
    assert.match(await curl(row.client, v4.url), /^hello/);
    await logged(core, "TCP", before + 1);
  });
  assert.doesNotMatch(core.output(), /level=fatal|a fault of weir/);
  assert.equal(await core.stop(), 0);
  assert.deepEqual(await traces(row), []);
  assert.ok(await isPlainlyConnected(row));
});
