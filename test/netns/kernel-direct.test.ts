/** Client – router with kernel-direct – Internet: what the rules prove DIRECT arrives from the client's own address. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { skipNetns, type Netns } from "../support/netns.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { CLIENT, openTransit, ROUTER, UPLINK, type Transit } from "../support/transit.ts";

const skip = skipNetns("kernel-direct", "nft", "curl", "dig", "ping", "tc");

const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
const SEND_FRAMES = fileURLToPath(new URL("../support/send-frames.ts", import.meta.url));

/** Addresses of the origin that are nobody's network, by the last number. */
const far = (last: number) => [`192.0.2.${last}`, `2001:db8:9::${last}`] as const;
const NUMBERS = { direct: 10, proxied: 20, shared: 30, chosen: 40, process: 50, timed: 60 };
const HOSTS = Object.entries(NUMBERS).map(([name, last]) => `  ${name}.test: [${far(last).join(", ")}]`);

interface Wanted {
  /** More keys of `tun`. */
  readonly tun?: string;
  readonly rules?: readonly string[];
}

const RULES = [
  "DOMAIN,also.test,PX",
  "DOMAIN,proxied.test,PX",
  "DOMAIN,chosen.test,CHOICE",
  "DOMAIN-SUFFIX,test,DIRECT",
];

/** PX is as good as a proxy: it leaves by a device of its own, so nothing through it is provable. */
const config = ({ tun = "", rules = RULES }: Wanted = {}) => `
log-level: info
external-controller: 0.0.0.0:9090
secret: s
ipv6: true
dns: { enable: true, ipv6: true, enhanced-mode: redir-host, nameserver: ["192.0.2.2"] }
hosts:
${HOSTS.join("\n")}
  also.test: [${far(NUMBERS.shared).join(", ")}]
tun: { enable: true, auto-route: true, auto-redirect: true, auto-detect-interface: false, kernel-direct: true, ${tun} }
proxies: [{ name: PX, type: direct, interface-name: up0 }]
proxy-groups: [{ name: CHOICE, type: select, proxies: [DIRECT, PX] }]
rules: [${[...rules, "MATCH,PX"].map((rule) => `"${rule}"`).join(", ")}]
`;

async function openWorld(label: string): Promise<Transit> {
  const row = await openTransit(label);
  // Datagrams are answered from an address that the router does not know as a neighbour's.
  await row.origin.ip("route change 198.51.100.0/24 dev down0 scope link src 192.0.2.2");
  for (const last of Object.values(NUMBERS))
    await row.origin.ip(
      `address add ${far(last)[0]}/32 dev lo`,
      `address add ${far(last)[1]}/128 dev lo nodad`,
    );
  return row;
}

const ask = async ({ client }: Transit, name: string, server: string = ROUTER[0]) => {
  const answers = await Promise.all(
    ["A", "AAAA"].map((type) =>
      client.run("dig", "+short", "+time=3", "+tries=1", `@${server}`, `${name}.test`, type),
    ),
  );
  return answers.join("").trim().split("\n");
};

const url = (host: string) => `http://${host.includes(":") ? `[${host}]` : host}/`;

/** By whom the client's requests to both addresses are carried. */
async function ways(row: Transit, last: number): Promise<ReturnType<typeof sourcesOf>> {
  await row.arrivals.forget();
  await Promise.all(far(last).map((host) => row.client.run("curl", "-sS", "--max-time", "4", url(host))));
  return sourcesOf(await row.arrivals.list());
}

/** "kernel": all from the client itself; "proxy": all from the router, which may prefer a family of its own. */
function sourcesOf(arrivals: readonly string[]): "kernel" | "proxy" | readonly string[] {
  const from = (whose: readonly string[]) =>
    arrivals.every((line) => whose.includes(line.split(" ")[1] as string));
  if (arrivals.length === 0) return arrivals;
  return from(CLIENT) ? "kernel" : from(UPLINK) ? "proxy" : arrivals;
}

async function api(router: Netns, method: string, path: string, body?: object): Promise<unknown> {
  const args = ["curl", "-sS", "--max-time", "5", "-X", method, "-H", "Authorization: Bearer s"];
  if (body !== undefined) args.push("-H", "Content-Type: application/json", "-d", JSON.stringify(body));
  const text = await router.run(...args, "-w", "\n%{http_code}", `http://127.0.0.1:9090${path}`);
  const lines = text.split("\n");
  const status = Number(lines.pop());
  return { status, body: lines.join("") === "" ? null : JSON.parse(lines.join("\n")) };
}

async function learnt(router: Netns, family: 4 | 6 = 4): Promise<readonly string[]> {
  const text = await router.run("nft", "-j", "list", "set", "inet", "svc", `inet${family}_kernel_direct_set`);
  const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: string[] } }[] };
  return nftables.flatMap(({ set }) => set?.elem ?? []).sort();
}

const start = (row: Transit, text: string): Promise<Core> => startCore(text, { prefix: row.router.prefix });

test("the sets of nftables", { skip, timeout: 120_000 }, async (t) => {
  await using row = await openWorld("bypass");
  const { client, router } = row;
  await using core = await start(row, config());

  await t.test("what nobody asked for goes through the proxy", async () => {
    assert.equal(await ways(row, NUMBERS.direct), "proxy");
    await api(router, "PATCH", "/configs", { mode: "global" }); // forget what these flows taught
    await api(router, "PATCH", "/configs", { mode: "rule" });
  });
  await t.test(
    "kernel-direct §8.1: after the answer the very first connection stays in the kernel",
    async () => {
      assert.deepEqual(await ask(row, "direct"), [...far(NUMBERS.direct)]);
      assert.equal(await ways(row, NUMBERS.direct), "kernel");
      assert.deepEqual(
        [await learnt(router), await learnt(router, 6)],
        far(NUMBERS.direct).map((each) => [each]),
      );
      for (const host of far(NUMBERS.direct)) {
        await row.arrivals.forget();
        await Promise.all([row.near("silence", host, 7), client.run("ping", "-c1", "-W1", host)]);
        const arrivals = await row.arrivals.list();
        assert.deepEqual([arrivals.length, sourcesOf(arrivals)], [2, "kernel"], "UDP and ICMP");
      }
    },
  );
  await t.test(
    "transparent-proxy §12.5: DNS to a learned address is answered by the service, UDP and TCP",
    async () => {
      await row.arrivals.forget();
      for (const server of far(NUMBERS.direct))
        assert.deepEqual(await ask(row, "proxied", server), [...far(NUMBERS.proxied)]);
      const overTcp = await client.run("dig", "+short", "+tcp", `@${far(NUMBERS.direct)[0]}`, "proxied.test");
      assert.equal(overTcp.trim(), far(NUMBERS.proxied)[0]);
      assert.deepEqual(await row.arrivals.list(), []);
      assert.equal(await ways(row, NUMBERS.proxied), "proxy");
    },
  );
  await t.test(
    "dns.md §16.13, kernel-direct §8.2: a shared address leaves the set before the second answer",
    async () => {
      await ask(row, "shared");
      assert.equal(await ways(row, NUMBERS.shared), "kernel");
      await ask(row, "also");
      assert.equal(await ways(row, NUMBERS.shared), "proxy");
      await ask(row, "shared");
      assert.equal(await ways(row, NUMBERS.shared), "proxy", "until the PROXY record expires");
    },
  );
  await t.test("kernel-direct §8.5: a selector on DIRECT; switched, the set is empty at once", async () => {
    await ask(row, "chosen");
    assert.equal(await ways(row, NUMBERS.chosen), "kernel");
    await api(router, "PUT", "/proxies/CHOICE", { name: "PX" });
    assert.deepEqual(await learnt(router), []);
    assert.equal(await ways(row, NUMBERS.chosen), "proxy");
    await ask(row, "chosen");
    assert.equal(await ways(row, NUMBERS.chosen), "proxy");
  });
  await changes(t, row, core);
  await t.test("status", async () => {
    await ask(row, "direct");
    await ask(row, "proxied");
    const { body } = (await api(router, "GET", "/api/svc/kernel-direct/status")) as {
      body: Record<string, unknown>;
    };
    const [set] = body["learned_sets"] as Record<string, number>[];
    assert.equal(body["backend"], "nftables");
    assert.deepEqual(body["fast_paths"], []);
    assert.equal(set?.["max_entries"], 4096);
    assert.ok((set?.["direct_addresses"] ?? 0) >= 2 && (set?.["proxy_addresses"] ?? 0) >= 2);
    assert.equal(
      set?.["learned_addresses"],
      (set?.["direct_addresses"] ?? 0) + (set?.["proxy_addresses"] ?? 0),
    );
  });
  await t.test("kernel-direct §8.7: the number of entries by PATCH", async () => {
    const entries = async () => {
      const { body } = (await api(router, "GET", "/configs")) as { body: { tun: Record<string, unknown> } };
      return [body.tun["enable"], body.tun["kernel-direct-max-entries"]];
    };
    const patch = async (count: number) =>
      (
        (await api(router, "PATCH", "/configs", { tun: { "kernel-direct-max-entries": count } })) as {
          status: number;
        }
      ).status;
    assert.equal(await patch(0), 204);
    assert.deepEqual(await entries(), [true, 4096]);
    assert.equal(await patch(65_536), 204);
    assert.deepEqual(await entries(), [true, 65_536]);
    assert.equal(await patch(65_537), 400);
    assert.deepEqual(await entries(), [true, 65_536]);
  });
  assert.equal(await core.stop(), 0);
  assert.equal(await ways(row, NUMBERS.proxied), "kernel", "plain forwarding");
});

/** Each kind of change empties the set before it answers. */
async function changes(t: TestContext, row: Transit, core: Core): Promise<void> {
  const { router } = row;
  const cases: Readonly<Record<string, () => Promise<unknown>>> = {
    "the mode": async () => {
      await api(router, "PATCH", "/configs", { mode: "global" });
    },
    "a rule switched off": async () => {
      await api(router, "PATCH", "/configs", { mode: "rule" });
      await ask(row, "direct");
      await api(router, "PATCH", "/rules/disable", { "0": true });
    },
    "a reload": async () => {
      await ask(row, "direct");
      core.write(config({ rules: ["DOMAIN,direct.test,PX"] }));
      await api(router, "PUT", "/configs?force=true", { path: "", payload: "" });
    },
  };
  for (const [what, change] of Object.entries(cases))
    await t.test(`${what} empties the set`, async () => {
      await ask(row, "direct");
      await change();
      assert.deepEqual(await learnt(router), []);
    });
  await t.test("the rules of before are back", async () => {
    core.write(config());
    await api(router, "PUT", "/configs?force=true", { path: "", payload: "" });
    await ask(row, "direct");
    assert.equal(await ways(row, NUMBERS.direct), "kernel");
  });
}

test(
  "kernel-direct §8.3: a process rule to a proxy above: nothing is learnt",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openWorld("process");
    await using core = await start(
      row,
      config({ rules: ["PROCESS-NAME,nobody,PX", "DOMAIN,direct.test,DIRECT"] }),
    );
    await ask(row, "direct");
    assert.deepEqual(await learnt(row.router), []);
    assert.equal(await ways(row, NUMBERS.direct), "proxy");
    assert.equal(await core.stop(), 0);
  },
);

test(
  "kill -9: connected within a second, and the next start finds nothing in its way",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openWorld("killed");
    {
      await using core = await start(row, config());
      await ask(row, "direct");
      assert.equal(await ways(row, NUMBERS.proxied), "proxy");
      await core.stop("SIGKILL");
    }
    assert.equal(await ways(row, NUMBERS.proxied), "kernel");
    await using again = await start(row, config());
    assert.equal(await ways(row, NUMBERS.proxied), "proxy");
    await ask(row, "direct");
    assert.equal(await ways(row, NUMBERS.direct), "kernel");
    assert.equal(await again.stop(), 0);
  },
);

const CLASSIFIER =
  "kernel-direct-ebpf: true, kernel-direct-ebpf-interfaces: [down0], kernel-direct-ebpf-required: true";

interface FastPath extends Record<string, unknown> {
  readonly packets: number;
  readonly "proxy-packets": number;
}

async function fastPath(router: Netns): Promise<FastPath> {
  const { body } = (await api(router, "GET", "/api/svc/kernel-direct/status")) as {
    body: { fast_paths: FastPath[] };
  };
  assert.equal(body.fast_paths.length, 1);
  return body.fast_paths[0] as FastPath;
}

const MODES = {
  "the classifier's DIRECT mark": { tun: CLASSIFIER, backend: "ebpf-tc-lpm-lru", steers: false },
  "the classifier's marks both ways": {
    tun: `${CLASSIFIER}, kernel-direct-ebpf-proxy: true`,
    backend: "ebpf-tc-lpm-lru",
    steers: true,
  },
  "transparent-proxy §12.6: the classifier's redirect into the TUN, beside a firewall that drops what is invalid":
    {
      tun: `${CLASSIFIER}, kernel-direct-ebpf-proxy: true, kernel-direct-ebpf-proxy-redirect: true`,
      backend: "ebpf-tc-lpm-lru-redirect",
      steers: true,
    },
};

/** What many routers have: it kills connections of which connection tracking has seen only one side. */
const DROPS_INVALID =
  "table inet fw { chain forward { type filter hook forward priority 0; ct state invalid counter drop; }; }";

for (const [mode, { tun, backend, steers }] of Object.entries(MODES))
  test(mode, { skip, timeout: 120_000 }, async (t) => {
    await using row = await openWorld("classifier");
    const { client, router } = row;
    await router.nft(DROPS_INVALID);
    const core = await start(row, config({ tun }));
    await using _ = core;

    await t.test("DIRECT stays in the kernel, counted; the rest is proxied", async () => {
      await ask(row, "direct");
      const before = await fastPath(router);
      assert.equal(before["backend"], backend);
      assert.deepEqual(before["interfaces"], ["down0"]);
      assert.equal(await ways(row, NUMBERS.direct), "kernel");
      const after = await fastPath(router);
      assert.ok(after.packets > before.packets, "TCP of DIRECT is counted");
      assert.equal(await ways(row, NUMBERS.proxied), "proxy");
      const { "proxy-packets": proxied } = await fastPath(router);
      assert.equal(proxied > after["proxy-packets"], steers, `${proxied} PROXY packets`);
    });
    await t.test("UDP, ping and large answers of both ways", async () => {
      for (const last of [NUMBERS.direct, NUMBERS.proxied])
        for (const host of far(last)) await client.run("ping", "-c1", "-W1", host);
      // An ordinary address of the origin, so that its answers come from where they were asked.
      assert.equal(await row.near("udp", "192.0.2.2", 7, 1300), "echo of 1300");
    });
    await t.test(
      "DNS to a learned address still comes to the service; the router itself is reached",
      async () => {
        assert.deepEqual(await ask(row, "proxied", far(NUMBERS.direct)[0]), [...far(NUMBERS.proxied)]);
        const { client: asker } = row;
        await asker.run("ping", "-c1", "-W1", ROUTER[0]);
        const greeting = await asker.run(
          "curl",
          "-sS",
          "-H",
          "Authorization: Bearer s",
          `http://${ROUTER[0]}:9090/version`,
        );
        assert.match(greeting, /version/);
      },
    );
    await t.test("a change empties the maps", async () => {
      await api(router, "PATCH", "/configs", { mode: "global" });
      assert.equal((await fastPath(router))["direct-prefixes"], 0);
      await api(router, "PATCH", "/configs", { mode: "rule" });
    });
    await t.test(
      "kernel-direct §8.11: kill -9, plain connectivity, one program after the next start",
      async () => {
        await core.stop("SIGKILL");
        assert.equal(await ways(row, NUMBERS.proxied), "kernel");
        await using again = await start(row, config({ tun }));
        assert.equal(await ways(row, NUMBERS.proxied), "proxy");
        await ask(row, "direct");
        assert.equal(await ways(row, NUMBERS.direct), "kernel");
        const chain = await router.run("nft", "list", "chain", "inet", "svc", "kernel_direct_mark");
        assert.equal(chain.split("svc-kernel-direct").length, 2, "one rule");
        assert.equal(await again.stop(), 0);
        assert.equal(await ways(row, NUMBERS.proxied), "kernel");
        assert.doesNotMatch(await router.run("nft", "list", "ruleset"), /svc/);
      },
    );
  });

test("kernel-direct §8.8: the classifier's interfaces", { skip, timeout: 60_000 }, async () => {
  await using row = await openWorld("interfaces");
  const { router } = row;
  await using core = await start(row, config());
  const patch = async (tun: object) =>
    (await api(router, "PATCH", "/configs", { tun })) as { status: number; body: { message: string } };
  const none = await patch({ "kernel-direct-ebpf": true });
  assert.equal(none.status, 400);
  assert.match(none.body.message, /kernel-direct-ebpf-interfaces/);
  const missing = await patch({
    "kernel-direct-ebpf": true,
    "kernel-direct-ebpf-interfaces": ["nowhere"],
    "kernel-direct-ebpf-required": true,
  });
  assert.equal(missing.status, 500);
  assert.match(missing.body.message, /nowhere/);
  assert.equal(await ways(row, NUMBERS.proxied), "proxy", "the TUN of before still runs");
  const optional = await patch({ "kernel-direct-ebpf": true, "kernel-direct-ebpf-interfaces": ["nowhere"] });
  assert.equal(optional.status, 204);
  const { body } = (await api(router, "GET", "/api/svc/kernel-direct/status")) as {
    body: Record<string, unknown>;
  };
  assert.equal(body["backend"], "nftables");
  assert.match(String(body["last-error"]), /nowhere/);
  assert.equal(await core.stop(), 0);
});

test("kernel-direct §8.10: an update that the maps refuse", { skip, timeout: 60_000 }, async () => {
  await using row = await openWorld("full");
  const { router } = row;
  const tun = `${CLASSIFIER}, kernel-direct-ebpf-max-entries: 12`;
  await using core = await start(row, config({ tun }));
  await ask(row, "direct");
  assert.equal((await fastPath(router))["backend"], "ebpf-tc-lpm-lru");
  // Every own address has a place in the maps by right: more of them than there is room for is a failure.
  await router.ip(...Array.from({ length: 12 }, (_, at) => `address add 203.0.113.${100 + at}/32 dev lo`));
  await core.shows(/the classifier is gone/);
  const { body } = (await api(router, "GET", "/api/svc/kernel-direct/status")) as {
    body: Record<string, unknown>;
  };
  assert.deepEqual([body["backend"], body["fast_paths"]], ["nftables", []]);
  assert.match(String(body["last-error"]), /no room/);
  assert.equal(await router.run("tc", "filter", "show", "dev", "down0", "ingress"), "");
  assert.equal(await ways(row, NUMBERS.direct), "kernel", "nftables goes on");
  assert.equal(await ways(row, NUMBERS.proxied), "proxy");
  const marks = await router.run("nft", "list", "chain", "inet", "svc", "kernel_direct_mark");
  assert.doesNotMatch(marks, /svc-kernel-direct/);
  assert.equal(await core.stop(), 0);
});

test("frames that nobody classifies pass uncounted", { skip, timeout: 60_000 }, async () => {
  await using row = await openWorld("frames");
  const { client, router } = row;
  const tun = `${CLASSIFIER}, kernel-direct-ebpf-proxy: true`;
  await using core = await start(row, config({ tun }));
  await ask(row, "direct");
  const [to, to6] = far(NUMBERS.direct);
  const [{ address: mac }] = JSON.parse(await router.run("ip", "-j", "link", "show", "down0")) as [
    { address: string },
  ];
  const send = async (...specs: readonly object[]) => {
    const from = specs.map((spec) => ({
      from: "to" in spec && spec.to === to6 ? CLIENT[1] : CLIENT[0],
      ...spec,
    }));
    await client.run(...node, SEND_FRAMES, "up0", mac, JSON.stringify(from));
  };
  const counted = async () => {
    const { packets, "proxy-packets": proxied } = await fastPath(router);
    return [packets, proxied];
  };
  const before = await counted();
  await send(
    { to, tags: [0x8100, 0x8100] },
    { to, tags: [0x88a8, 0x8100] },
    { to, fragment: 0x2000 },
    { to, fragment: 0x00b9 },
    { to: to6, extension: 44 },
    { to: to6, extension: 0 },
    { to, ports: [40_000, 53], protocol: 17 },
    { to: "198.18.0.77" },
    { to: ROUTER[0] },
    { to: ROUTER[1] },
  );
  assert.deepEqual(await counted(), before);
  await send({ to, protocol: 17 }, { to: to6, protocol: 17 }, { to: "9.9.9.9", protocol: 17 });
  assert.deepEqual(await counted(), [(before[0] ?? 0) + 2, (before[1] ?? 0) + 1]);
  assert.equal(await core.stop(), 0);
});

test("a rule provider's new contents answer for an empty set", { skip, timeout: 60_000 }, async () => {
  await using row = await openWorld("provider");
  const { router } = row;
  const text = `${config({ rules: ["RULE-SET,list,DIRECT"] })}
rule-providers: { list: { type: file, behavior: domain, format: text, path: ./list.txt } }
`;
  const seed = (home: string) => writeFileSync(join(home, "list.txt"), "direct.test\n");
  await using core = await startCore(text, { prefix: router.prefix, seed });
  await ask(row, "direct");
  assert.equal(await ways(row, NUMBERS.direct), "kernel");
  writeFileSync(join(core.home, "list.txt"), "other.test\n");
  await api(router, "PUT", "/providers/rules/list");
  assert.deepEqual(await learnt(router), []);
  assert.equal(await ways(row, NUMBERS.direct), "proxy");
  await ask(row, "direct");
  assert.equal(await ways(row, NUMBERS.direct), "proxy");
  assert.equal(await core.stop(), 0);
});
