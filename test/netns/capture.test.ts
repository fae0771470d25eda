/** What a capture brings to a TUN and its listener and what it leaves alone; a stand-in holds both. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { openNetns, skipNetns, type Netns } from "../support/netns.ts";
import { leftovers } from "../support/netns-row.ts";
import {
  CLIENT,
  FAR,
  openTransit,
  ORIGIN,
  ROUTER,
  startStandIn,
  UPLINK,
  type Transit,
} from "../support/transit.ts";
import { until } from "../support/until.ts";

const skip = skipNetns("capture", "nft", "curl", "ping", "setpriv");
const marked = join(dirname(fileURLToPath(import.meta.url)), "..", "support", "marked.ts");
const node = [process.execPath, "--disable-warning=ExperimentalWarning"];

const url = (host: string) => `http://${host.includes(":") ? `[${host}]` : host}/`;
const curl = (netns: Netns, host: string, ...before: readonly string[]) =>
  netns.run(...before, "curl", "-sS", "--max-time", "5", url(host));
/** One TCP connection, one UDP datagram, one ping; failures show in what did not arrive. */
async function knock({ nearIn }: Transit, netns: Netns, host: string): Promise<void> {
  const quietly = (work: Promise<unknown>) => work.catch(() => undefined);
  await Promise.all([
    quietly(curl(netns, host)),
    quietly(nearIn(netns, "silence", host, 7)),
    quietly(netns.run("ping", "-c1", "-W0.3", host)),
  ]);
}
/** How what `knock` sends looks at the origin when it comes from there. */
const all = (from: string) => [
  `${from.includes(":") ? "ipv6-icmp" : "icmp"} ${from} 0`,
  `tcp ${from} 80`,
  `udp ${from} 7`,
];
const sorted = (...lines: readonly (readonly string[])[]) =>
  lines.flat().toSorted((a, b) => a.localeCompare(b));

async function seen(row: Transit, netns: Netns, hosts: readonly string[]): Promise<readonly string[]> {
  await row.arrivals.forget();
  await Promise.all(hosts.map((host) => knock(row, netns, host)));
  return row.arrivals.list();
}

/** Nothing of ours in the router's kernel. */
async function assertClean(router: Netns): Promise<void> {
  assert.doesNotMatch(await router.run("nft", "list", "ruleset"), /svc/);
  for (const family of ["-4", "-6"]) {
    assert.doesNotMatch(await router.run("ip", family, "rule"), /^(90\d\d|32768):/m);
    assert.equal(await router.run("ip", family, "route", "show", "table", "2022").catch(() => ""), "");
  }
}

/** Which ip rules of ours go from now on, by priority, whichever program removes them. */
async function watchRules(
  router: Netns,
): Promise<AsyncDisposable & { deleted(): Promise<readonly string[]> }> {
  const [program, ...args] = [...router.prefix, "ip", "monitor", "rule"];
  const child = spawn(program as string, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let seen = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (seen += text));
  /** A rule of our own is seen to go: everything before it was seen, too. */
  const caughtUp = (priority: number) =>
    until(`rule ${priority} is seen to go`, async () => {
      await router.ip(`rule add pref ${priority} table 1`, `rule del pref ${priority}`);
      return seen.includes(`Deleted ${priority}:`);
    });
  await caughtUp(77);
  return {
    async deleted() {
      await caughtUp(78);
      return [...seen.matchAll(/^Deleted (90\d\d:|32768:)/gm)].map(([, rule]) => rule as string).toSorted();
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}

test("with auto-redirect", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openTransit("mark");
  const { client, router } = row;
  assert.deepEqual(await seen(row, client, FAR), sorted(all(CLIENT[0]), all(CLIENT[1])), "before");
  const standIn = await startStandIn(router, { options: { kernelDirect: true }, hijackDns: true });

  await t.test(
    "transparent-proxy §12.1: a client's TCP, UDP and ICMP of both families are captured",
    async () => {
      // TCP comes back as the relay of the stand-in; the rest is answered by the TUN and arrives nowhere.
      assert.deepEqual(await seen(row, client, FAR), sorted(...UPLINK.map((from) => [`tcp ${from} 80`])));
      for (const host of FAR) assert.ok(standIn.lines.includes(`tcp ${host} 80`), "the right destination");
      for (const host of FAR) assert.equal(await row.near("udp", host, 7, 99), "other bytes: 99");
      for (const host of FAR) await client.run("ping", "-c1", "-W1", host);
    },
  );
  await t.test("transparent-proxy §12.1: the router's own programs likewise", async () => {
    assert.deepEqual(await seen(row, router, FAR), sorted(...UPLINK.map((from) => [`tcp ${from} 80`])));
    for (const host of FAR) assert.equal(await row.nearIn(router, "udp", host, 7, 99), "other bytes: 99");
    assert.equal(standIn.lines.filter((line) => line === `tcp ${FAR[0]} 80`).length, 2);
  });
  await t.test(
    "transparent-proxy §12.1: networks around and the router's own addresses are left alone",
    async () => {
      assert.deepEqual(await seen(row, client, ORIGIN), sorted(all(CLIENT[0]), all(CLIENT[1])));
      for (const host of ROUTER) await client.run("ping", "-c1", "-W1", host);
      for (const host of ROUTER) assert.equal(await row.near("end", host, 9), "ECONNREFUSED");
    },
  );
  await t.test("transparent-proxy §12.2: marked sockets reach the world over TCP and UDP", async () => {
    for (const host of FAR)
      assert.equal(
        await router.run(...node, marked, String(0x2024), host, "7"),
        "tcp marked\nudp 7:marked\n",
      );
  });
  await t.test(
    "transparent-proxy §12.3: a learned address is left to the kernel, what is proxied goes on",
    async () => {
      const held = row.talk("hold", FAR[0], 7);
      held.say("one");
      assert.deepEqual(sorted([await held.nextLine(), await held.nextLine()]), ["tcp one", "udp one"]);
      await standIn.tell(`add ${FAR.join(" ")}`);
      assert.deepEqual(await seen(row, client, FAR), sorted(all(CLIENT[0]), all(CLIENT[1])));
      held.say("two");
      assert.deepEqual(sorted([await held.nextLine(), await held.nextLine()]), ["tcp two", "udp two"]);
      await standIn.tell(`delete ${FAR.join(" ")}`);
      assert.deepEqual(await seen(row, client, FAR), sorted(...UPLINK.map((from) => [`tcp ${from} 80`])));
    },
  );
  await t.test("transparent-proxy §9.3: what changes of the learned set cost", (st) =>
    measureSet(st, standIn),
  );
  await t.test("transparent-proxy §9.5: no other program changes the table", async () => {
    await assert.rejects(router.run("nft", "delete", "table", "inet", "svc"));
    await router.run("nft", "flush", "ruleset");
    assert.match(await router.run("nft", "list", "table", "inet", "svc"), /redirect to/);
  });
  await t.test(
    "the owner's socket is closed under it: direct for a moment, then captured again",
    async () => {
      await standIn.tell("lose-session");
      const ways = async () => (await seen(row, client, [FAR[0]])).filter((line) => line.startsWith("tcp"));
      const captured = [`tcp ${UPLINK[0]} 80`];
      const first = await ways();
      assert.equal(first.length, 1, "no connection is cut off");
      await until("it is captured again", async () => (await ways()).join() === captured.join());
      assert.ok((await standIn.line(/has gone, it is made anew/)).length > 0);
    },
  );
  await t.test("ip rules and routes that another program removes come back", async () => {
    await using changes = await watchRules(router);
    await router.ip("rule del pref 9001", "-6 rule del pref 9000", "route flush table 2022");
    const shown = async () =>
      (await router.run("ip", "rule")).includes("9001:") &&
      (await router.run("ip", "-6", "rule")).includes("9000:") &&
      (await router.run("ip", "route", "show", "table", "2022")).includes("default");
    await until("they are back", shown);
    const rules = (await router.run("ip", "rule")).match(/^(90\d\d|32768):/gm);
    assert.deepEqual(rules, ["9000:", "9001:", "9002:", "32768:"]);
    const gone = await changes.deleted();
    assert.deepEqual(gone, ["9000:", "9001:"], "what is right stays where it is");
  });
  await t.test("transparent-proxy §9.1: the sets of local networks follow the addresses", async () => {
    await router.ip("address add 192.0.2.77/24 dev down0");
    const holds = async () =>
      (await router.run("nft", "list", "set", "inet", "svc", "inet4_local_address_set")).includes("192.0.2.");
    await until("the set has the address", holds);
    await router.ip("address del 192.0.2.77/24 dev down0");
    await until("the set has lost it", async () => !(await holds()));
  });
  await t.test("transparent-proxy §8.4: the default interface is watched", async () => {
    assert.equal(standIn.lines[0], "ready up0");
    await router.ip("route del default", "-6 route del default");
    await standIn.line(/^default none$/);
    await router.ip(`route add default via ${ORIGIN[0]}`, `-6 route add default via ${ORIGIN[1]}`);
    await standIn.line(/^default up0$/);
  });
  await t.test("transparent-proxy §9.5: a stop leaves nothing, and everything is direct", async () => {
    await standIn.tell("stop");
    await assertClean(router);
    assert.deepEqual(await seen(row, client, FAR), sorted(all(CLIENT[0]), all(CLIENT[1])));
    assert.doesNotMatch(await router.run("cat", "/proc/net/nf_conntrack").catch(() => ""), /mark=8227 /);
  });
  await standIn.kill();
});

async function measureSet(t: TestContext, standIn: { tell(command: string): Promise<void> }): Promise<void> {
  const timed = async (command: string): Promise<number> => {
    const startedMs = performance.now();
    await standIn.tell(command);
    return performance.now() - startedMs;
  };
  const many = Array.from({ length: 65_536 }, (_, at) => `10.9.${at >> 8}.${at & 255}`);
  t.diagnostic(`65,536 addresses: ${(await timed(`replace ${many.join(" ")}`)).toFixed(0)} ms`);
  const adds: number[] = [];
  for (let at = 0; at < 100; at++)
    adds.push(await timed(`add 10.8.0.${at}`), await timed(`delete 10.8.0.${at}`));
  adds.sort((a, b) => a - b);
  const [median = 0, worst = 0] = [adds[100], adds[197]];
  t.diagnostic(`one address more or less: median ${median.toFixed(2)} ms, 99 % ${worst.toFixed(2)} ms`);
  assert.ok(median <= 50, "a median far from 5 ms on a machine that does other things, too");
  await standIn.tell("replace 10.9.0.1");
}

test(
  "a killed program leaves a LAN that works, and no trouble for the next one",
  { skip, timeout: 240_000 },
  async (t) => {
    await using row = await openTransit("crash");
    const { client, router } = row;
    for (const host of FAR) await curl(client, host); // neighbours have found each other, which takes IPv6 a while
    const first = await startStandIn(router, {});
    await first.kill();
    const startedMs = performance.now();
    for (const host of FAR) assert.match(await curl(client, host), /^hello/);
    const tookMs = performance.now() - startedMs;
    t.diagnostic(`transparent-proxy §12.4: direct over both families ${tookMs.toFixed(0)} ms after SIGKILL`);
    assert.ok(tookMs < 5_000);
    assert.deepEqual(await seen(row, client, FAR), sorted(all(CLIENT[0]), all(CLIENT[1])));
    assert.doesNotMatch(await router.run("nft", "list", "tables"), /svc/);
    const second = await startStandIn(router, {});
    assert.equal((await router.run("ip", "rule")).match(/^(90\d\d|32768):/gm)?.length, 4);
    assert.deepEqual(await seen(row, client, FAR), sorted(...UPLINK.map((from) => [`tcp ${from} 80`])));
    await second.tell("stop");
    await assertClean(router);
    await second.kill();
  },
);

test("what is left out of auto-redirect", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openTransit("out");
  const { client, router, origin } = row;
  await origin.ip("address add 192.0.2.3/32 dev lo", "address add fd00:9::3/128 dev lo nodad");
  const others = ["192.0.2.3", "fd00:9::3"];
  const range = (number: number) => ({ from: number, to: number });
  await using standIn = await startStandIn(router, {
    options: {
      routeExcludeAddress: ["192.0.2.3/32", "fd00:9::3/128"] as never,
      excludeUid: [range(1000)],
      excludeDestinationPort: [range(9)],
    },
    routeSet: ["192.0.2.0/24", "fd00:9::/64"],
    routeExcludeSet: ["198.18.7.0/24"],
  });
  await t.test("route-exclude-address", async () => {
    assert.deepEqual(await seen(row, client, others), sorted(all(CLIENT[0]), all(CLIENT[1])));
    assert.deepEqual(await seen(row, client, FAR), sorted(...UPLINK.map((from) => [`tcp ${from} 80`])));
  });
  await t.test("exclude-uid", async () => {
    await row.arrivals.forget();
    const lines = standIn.lines.length;
    for (const host of FAR) await curl(router, host, "setpriv", "--reuid=1000", "--clear-groups");
    assert.equal(standIn.lines.length, lines, "nothing was redirected");
  });
  await t.test("exclude-dst-port", async () => {
    assert.equal(await row.near("udp", FAR[0], 9, 10), "echo of 10");
    assert.equal(await row.near("udp", FAR[1], 9, 10), "echo of 10");
  });
  await t.test("route-address-set and route-exclude-address-set are renewed", async () => {
    await standIn.tell("sets 10.99.0.0/16"); // what is captured no longer holds the origin
    assert.deepEqual(await seen(row, client, FAR), sorted(all(CLIENT[0]), all(CLIENT[1])));
    await standIn.tell("sets");
    assert.deepEqual(
      await seen(row, client, FAR),
      sorted(all(CLIENT[0]), all(CLIENT[1])),
      "an empty set: nothing",
    );
  });
});

test("strict-route without IPv6, beside other firewalls", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openTransit("strict");
  const { client, router } = row;
  const firewalls = `
table inet fw4 {
  chain input { type filter hook input priority 0; policy accept; }
  chain forward {
    type filter hook forward priority 0; policy drop;
    iifname "down0" oifname "up0" accept
    iifname "up0" accept
    icmpv6 type != echo-request accept
  }
}
table ip filter {
  chain DOCKER-USER { }
}
`;
  await router.nft(firewalls);
  const standIn = await startStandIn(router, { inet6: false, options: { strictRoute: true } });
  const comments = async () =>
    (await router.run("nft", "list", "ruleset")).match(/comment "svc/g)?.length ?? 0;
  await t.test("IPv6 is refused, IPv4 is captured", async () => {
    await assert.rejects(curl(client, FAR[1]));
    assert.deepEqual(await seen(row, client, FAR), sorted([`tcp ${UPLINK[0]} 80`]));
    assert.equal(await row.near("udp", FAR[0], 7, 99), "other bytes: 99");
    assert.deepEqual(await seen(row, client, [ORIGIN[1]]), all(CLIENT[1]).toSorted());
  });
  await t.test(
    "transparent-proxy §9.4: openings in fw4 and DOCKER-USER, put back when they are lost",
    async () => {
      assert.equal(await comments(), 5);
      await router.run("nft", "flush", "chain", "ip", "filter", "DOCKER-USER");
      await until("they are back", async () => (await comments()) === 5);
    },
  );
  await t.test("a stop takes the openings away and leaves the rest", async () => {
    await standIn.tell("stop");
    assert.equal(await comments(), 0);
    assert.match(await router.run("nft", "list", "chain", "inet", "fw4", "forward"), /iifname "up0" accept/);
    await assertClean(router);
  });
  await standIn.kill();
});

test("auto-route alone", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openTransit("route");
  const { client, router, origin } = row;
  await origin.ip("address add 192.0.2.3/32 dev lo", "address add fd00:9::3/128 dev lo nodad");
  const options = { autoRedirect: false, routeExcludeAddress: ["192.0.2.3/32", "fd00:9::3/128"] as never };
  await t.test(
    "transparent-proxy §8.2: everything but what is excluded or near goes to the TUN",
    async () => {
      const standIn = await startStandIn(router, { options });
      assert.deepEqual(await seen(row, client, FAR), []);
      for (const host of FAR) assert.equal(await row.near("udp", host, 7, 99), "other bytes: 99");
      for (const host of FAR) assert.equal(await row.nearIn(router, "udp", host, 7, 99), "other bytes: 99");
      assert.deepEqual(
        await seen(row, client, ["192.0.2.3", "fd00:9::3"]),
        sorted(all(CLIENT[0]), all(CLIENT[1])),
      );
      assert.deepEqual(await seen(row, client, ORIGIN), sorted(all(CLIENT[0]), all(CLIENT[1])));
      await standIn.tell("stop");
      await assertClean(router);
      assert.deepEqual(await seen(row, client, FAR), sorted(all(CLIENT[0]), all(CLIENT[1])));
      await standIn.kill();
    },
  );
  await t.test("strict-route, include-interface, exclude-uid", async () => {
    const standIn = await startStandIn(router, {
      inet6: false,
      options: {
        autoRedirect: false,
        strictRoute: true,
        includeInterface: ["down0"],
        excludeUid: [{ from: 1000, to: 1000 }],
      },
    });
    assert.deepEqual(await seen(row, client, FAR), [], "IPv4 to the TUN, IPv6 nowhere");
    assert.deepEqual(await seen(row, router, [FAR[0]]), all(UPLINK[0]).toSorted(), "not of the interface");
    await standIn.tell("stop");
    await assertClean(router);
    await standIn.kill();
  });
});

test("transparent-proxy §9.6: without nftables the error says so", { skip, timeout: 240_000 }, async () => {
  await using row = await openTransit("none");
  await assert.rejects(
    startStandIn(row.router, {}, { DISABLE_NFTABLES: "1" }),
    /auto-redirect: needs nftables, which DISABLE_NFTABLES=1 switches off/,
  );
  await assertClean(row.router);
});

test("an address that comes while the table is being made is in it", { skip }, async () => {
  await using router = await openNetns("capturelate");
  await router.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"); // or its own address would be a change
  await router.ip("link add weir-tun0 type bridge", "link set weir-tun0 up");
  const late = join(dirname(marked), "netns-capture-late.ts");
  assert.equal(await router.run("timeout", "20", ...node, late, "weir-tun0"), "it is\n");
});

test("a default route that goes while the watch begins is gone", { skip }, async () => {
  await using router = await openNetns("defaultlate");
  await router.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"); // or its own address would be a change
  await router.ip("link add up0 type bridge", "link set up0 up");
  const late = join(dirname(marked), "netns-default-late.ts");
  assert.equal(await router.run("timeout", "60", ...node, late, "up0"), "it was seen each time\n");
});

test("nothing is left behind", { skip }, () => {
  for (const label of ["mark", "crash", "out", "strict", "route", "none"])
    assert.deepEqual(leftovers(label), []);
});
