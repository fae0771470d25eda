/** Client – router with a TUN – origin: what the router's kernel is told to bring to weir reaches where it was going. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test, type TestContext } from "node:test";
import { skipNetns, type Netns } from "../support/netns.ts";
import { isPlainlyConnected, openRoutedRow } from "../support/netns-far-away.ts";
import { FAMILIES, type Row } from "../support/netns-row.ts";
import { startCore, type Core } from "../support/start-core.ts";

const WITH_TUN = fileURLToPath(new URL("../support/with-tun.ts", import.meta.url));
const skip = skipNetns("tun", "nft", "curl", "ping");

const [v4] = FAMILIES;
const SECOND_CLIENT = "203.0.113.3";
const DEVICE = "weir-tun0";
const SECRET = "s3cret";

const config = (tun: string, rules = '"MATCH,DIRECT"', more = "") => `
log-level: debug
external-controller: 127.0.0.1:9090
secret: ${SECRET}
tun: { enable: true, device: ${DEVICE}, ${tun} }
dns: { enable: true, ipv6: true, enhanced-mode: redir-host, nameserver: ["${v4.origin}"] }
rules: [${rules}]
${more}`;

/** Redirects and the rules of section 8 and 9; nothing but what is asked for is left direct. */
const MARK_MODE = "stack: gvisor, auto-route: true, auto-redirect: true, auto-detect-interface: false";
/** Everything through the device, TCP by the stack's NAT. */
const ROUTED = "stack: system, auto-route: true, auto-redirect: false, auto-detect-interface: true";

const curl = (from: Netns, ...args: readonly string[]) => from.run("curl", "-sS", "--max-time", "5", ...args);

function controller({ router }: Row, ...args: readonly string[]): Promise<string> {
  const auth = ["-H", `Authorization: Bearer ${SECRET}`];
  return curl(router, ...auth, ...args, "http://127.0.0.1:9090/configs");
}

async function tunOf(row: Row): Promise<Record<string, unknown>> {
  return (JSON.parse(await controller(row)) as { tun: Record<string, unknown> }).tun;
}

const patch = (row: Row, body: object) =>
  controller(row, "-X", "PATCH", "-d", JSON.stringify(body), "-w", "%{http_code}");

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

/** What a capture leaves on a router: rules of its own, its table of nftables, its device. */
async function traces({ router }: Row): Promise<readonly string[]> {
  const looks = ["ip rule", "ip -6 rule", "ip route show table 2022", "nft list tables", "ip -br link"];
  const shown = await Promise.all(looks.map((look) => router.run("sh", "-c", `${look} 2>/dev/null || true`)));
  return shown
    .flatMap((text) => text.split("\n"))
    .filter((line) => /2022|^90\d\d:|^32768:|table inet|^weir-tun0|198\.18\./.test(line));
}

function sessions(core: Core, network: string): number {
  return core.output().match(new RegExp(`\\[${network}\\] .*-->`, "g"))?.length ?? 0;
}

/** Lines come a little later than what they tell of. */
async function logged(core: Core, network: string, count: number): Promise<void> {
  const until = performance.now() + 5_000;
  while (sessions(core, network) < count && performance.now() < until) await new Promise(setImmediate);
  assert.equal(sessions(core, network), count);
}

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
    await t.test(`${name}: a stranger may answer`, async () => {
      assert.equal(await row.near("stranger", origin, 11), `${origin} 12`);
    });
    await t.test(
      `${name}: transparent-proxy §12 line 5: questions are answered, whoever is asked`,
      async () => {
        const nobody = name === "IPv4" ? "192.0.2.53" : "2001:db8::53";
        for (const server of takesOwnQuestions ? [origin, nobody, own] : [origin, nobody])
          assert.equal(await row.near("dns", server), "198.51.100.2", server);
        assert.equal(await row.near("dnstcp", nobody), "198.51.100.2");
      },
    );
    await t.test(`${name}: a ping reaches whom it is for, and nobody answers for others`, async () => {
      const nobody = name === "IPv4" ? "198.51.100.99" : "fd00:2::99";
      const ping = (to: string) => client.run("sh", "-c", `ping -n -c 2 -i 0.05 -W 1 ${to} || true`);
      assert.match(await ping(origin), new RegExp(`from ${origin}: [^]* 2 received`));
      assert.match(await ping(nobody), / 0 received/);
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
      "transparent-proxy §6.2: who is refused hears of it, whoever is dropped does not",
      async () => {
        for (const { origin } of FAMILIES) {
          assert.equal(await row.near("refused", origin, 40), "ECONNREFUSED", origin);
          assert.equal(await row.nearIn(router, "refused", origin, 40), "ECONNREFUSED", origin);
          assert.equal(await row.near("refused", origin, 41), "silence", origin);
        }
      },
    );

    await t.test("rules see who asked", async () => {
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
      core.write(config(MARK_MODE).replace("nameserver", policy));
      process.kill(core.pid, "SIGHUP");
      await core.shows(/configuration reloaded/);
      // Nobody speaks TLS there: what counts is what leaves.
      const asked = upstreams.map((_, at) => row.near("dns", v4.origin, at).catch(() => ""));
      const until = performance.now() + 10_000;
      const seen = async (set: string) => {
        const text = await router.run("nft", "-j", "list", "set", "inet", "weir_marks", set);
        const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: { concat: unknown[] }[] } }[] };
        return nftables
          .flatMap((entry) => entry.set?.elem?.map(({ concat }) => concat.join(" ")) ?? [])
          .toSorted((left, right) => left.localeCompare(right));
      };
      while ((await seen("marked")).length < 4)
        assert.ok(performance.now() < until, "four kinds within 10 s");
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

    await t.test("an orderly stop leaves nothing and nobody waits", async () => {
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

  await t.test("nobody gets in by the port of the stack's listener", async () => {
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
      assert.deepEqual([await held.hear(), await held.hear()].toSorted(), [`tcp ${line}`, `udp 7:${line}`]);
    };
    await round("one");
    core.write(config(ROUTED, '"DST-PORT,80,REJECT","MATCH,DIRECT"'));
    process.kill(core.pid, "SIGHUP");
    await core.shows(/reload/i);
    await round("two");
    await assert.rejects(curl(row.client, v4.url));
    assert.equal(await index(), before);
    core.write(config(ROUTED));
    process.kill(core.pid, "SIGHUP");
    await core.shows(/reload[^]*reload/i);
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
      assert.match(await controller(row), /"mode":"rule"/);
      assert.match(await curl(row.client, v4.url), /^hello/);
    },
  );

  await t.test("a device that somebody deletes is made anew", async () => {
    await router.ip(`link delete ${DEVICE}`);
    await core.shows(/somebody has deleted the device/);
    await core.shows(/deleted[^]*is made anew[^]*DEFAULT-TUN listening/);
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

test(
  "configuration §9.4: a listener of type tun, with routes that somebody else makes",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openRoutedRow("tunlist");
    const { client, router } = row;
    await using core = await startCore(
      `
log-level: debug
listeners:
  - { name: lan, type: tun, device: ${DEVICE}, inet4-address: [10.77.0.1/24], inet6-address: ["fd77::1/64"], gso: true }
dns: { enable: true, nameserver: ["${v4.origin}"] }
rules: ["AND,((IN-NAME,lan),(IN-TYPE,TUN),(DST-PORT,80)),REJECT", "IN-NAME,lan,DIRECT", "MATCH,REJECT"]
interface-name: up0
`,
      { prefix: router.prefix },
    );
    // What comes from clients goes into the device, what weir sends itself does not.
    await router.ip("route add default dev weir-tun0 table 77", "rule add iif down0 lookup 77 priority 100");
    await router.ip(
      "-6 route add default dev weir-tun0 table 77",
      "-6 rule add iif down0 lookup 77 priority 100",
    );
    for (const { origin, url } of FAMILIES) {
      assert.equal(await row.near("many", origin, 7, 20), "20 echoed");
      assert.equal(await row.near("udp", origin, 7, 1000), "echo of 1000");
      await assert.rejects(curl(client, url));
    }
    assert.equal(await core.stop(), 0);
    assert.deepEqual(await traces(row), []);
  },
);

test(
  "transparent-proxy §5: a device that somebody else has opened and set up is used as it is",
  { skip, timeout: 120_000 },
  async () => {
    await using row = await openRoutedRow("tunfd");
    const { router } = row;
    const numbered = (descriptor: number) => `
log-level: debug
external-controller: 127.0.0.1:9090
secret: ${SECRET}
tun: { enable: true, file-descriptor: ${descriptor}, inet6-address: ["fd77::1/64"], auto-route: true }
dns: { enable: true, nameserver: ["${v4.origin}"] }
rules: ["MATCH,DIRECT"]
`;
    const opener = ["198.18.0.1/30", "fd77::1/64", "--"];
    const giving = [
      process.execPath,
      "--disable-warning=ExperimentalWarning",
      WITH_TUN,
      DEVICE,
      "100",
      ...opener,
    ];
    const core = await startCore(numbered(100), { prefix: [...router.prefix, ...giving] });
    await using _ = core;
    await core.shows(new RegExp(`listening on ${DEVICE}`));
    assert.deepEqual(
      (await traces(row)).filter((line) => !line.startsWith(DEVICE)),
      [],
      "no rules, no routes",
    );
    assert.match(await router.run("ip", "-br", "address", "show", DEVICE), /198\.18\.0\.1\/30 fd77::1\/64/);
    for (const family of ["", "-6 "])
      await router.ip(
        `${family}route add default dev ${DEVICE} table 77`,
        `${family}rule add iif down0 lookup 77 priority 100`,
      );
    for (const { origin, url } of FAMILIES) {
      assert.match(await curl(row.client, url), /^hello/);
      assert.equal(await row.near("many", origin, 7, 20), "20 echoed");
      assert.equal(await row.near("udp", origin, 7, 1000), "echo of 1000");
    }
    await logged(core, "TCP", 42); // all of it came through weir
    await logged(core, "UDP", 2);
    assert.equal(await core.stop(), 0);
    assert.doesNotMatch(
      await router.run("ip", "-br", "link"),
      new RegExp(DEVICE),
      "it went with its descriptor",
    );

    // Standard output: whatever number stands there, it is not closed.
    await using refused = await startCore(numbered(1), { prefix: router.prefix });
    assert.match(refused.output(), /level=error msg="tun\.file-descriptor 1: TUNGETIFF/);
    assert.match(await controller(row), /"file-descriptor":1/);
    assert.equal(await refused.stop(), 0);
    assert.match(refused.output(), /shutting down/);
  },
);

test("route sets follow their rule providers", { skip, timeout: 60_000 }, async () => {
  await using row = await openRoutedRow("tunsets");
  const { client, router } = row;
  const file = (home: string, text: string) => writeFileSync(join(home, "around.txt"), text);
  const provider = "around: { type: file, behavior: ipcidr, format: text, path: ./around.txt }";
  await using core = await startCore(
    config(
      `${MARK_MODE}, route-exclude-address-set: [around]`,
      '"MATCH,DIRECT"',
      `rule-providers: { ${provider} }\n`,
    ),
    { prefix: router.prefix, seed: (home) => file(home, "192.0.2.0/24\n") },
  );
  assert.match(await curl(client, v4.url), /^hello/);
  await logged(core, "TCP", 1);
  file(core.home, `192.0.2.0/24\n${v4.origin}/32\n`);
  const auth = ["-H", `Authorization: Bearer ${SECRET}`];
  await curl(router, "-f", ...auth, "-X", "PUT", "http://127.0.0.1:9090/providers/rules/around");
  const until = performance.now() + 5_000;
  const excluded = async () => (await router.run("nft", "list", "table", "inet", "svc")).includes(v4.origin);
  while (!(await excluded())) assert.ok(performance.now() < until, "the set changes");
  assert.match(await curl(client, v4.url), /^hello/);
  assert.equal(await row.near("udp", v4.origin, 7, 10), "echo of 10");
  assert.deepEqual([sessions(core, "TCP"), sessions(core, "UDP")], [1, 0]);
  assert.equal(await core.stop(), 0);
});

test("fake addresses, and a TUN that cannot be opened", { skip, timeout: 60_000 }, async (t) => {
  await using row = await openRoutedRow("tunfake");
  const { client, router } = row;
  const text = (device: string, more = "") =>
    config(`${ROUTED}, gso: true`, '"DOMAIN,www.origin.test,DIRECT","MATCH,REJECT"', more)
      .replace("redir-host", "fake-ip")
      .replace(`device: ${DEVICE}`, `device: ${device}`);
  await using core = await startCore(text("a-name-that-is-too-long"), { prefix: router.prefix });

  await t.test(
    "configuration §1: at the start it is logged, and no change of something else fails",
    async () => {
      assert.match(core.output(), /level=error msg="tun.device a-name/);
      assert.equal((await tunOf(row))["enable"], false);
      assert.match(await patch(row, { "allow-lan": true }), /204$/);
      assert.match(await patch(row, { tun: { enable: true } }), /500$/);
      assert.match(await patch(row, { tun: { device: DEVICE } }), /204$/);
    },
  );

  await t.test("a faked name carries TCP and UDP, and replies come from the faked address", async () => {
    const fake = await row.near("dns", "192.0.2.53");
    assert.match(fake, /^198\.18\.0\.\d+$/);
    assert.match(await curl(client, `http://${fake}/`), /^hello to /);
    assert.equal(await row.near("udp", fake, 7, 100), "echo of 100");
    assert.match(await client.run("ping", "-n", "-c", "1", "-W", "2", fake), / 1 received/);
    assert.match(core.output(), /www\.origin\.test:80/);
  });

  await t.test("a global routing-mark beside auto-redirect is refused", async () => {
    core.write(text(DEVICE, "routing-mark: 7\n").replace("auto-redirect: false", "auto-redirect: true"));
    process.kill(core.pid, "SIGHUP");
    await core.shows(/routing-mark: tun\.auto-redirect marks every socket itself/);
    const fake = await row.near("dns", "192.0.2.53");
    assert.match(await curl(client, `http://${fake}/`), /^hello to /);
  });
  assert.equal(await core.stop(), 0);
});
