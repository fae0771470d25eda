/** kernel-direct by the eBPF classifier: its marks, its redirect, its interfaces, what it refuses and passes by. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  skip,
  node,
  SEND_FRAMES,
  far,
  NUMBERS,
  config,
  openWorld,
  ask,
  assertEchoes,
  hold,
  ways,
  sourcesOf,
  api,
  start,
} from "../support/kernel-direct-world.ts";
import type { Netns } from "../support/netns.ts";
import { CLIENT, FAR, ORIGIN, ROUTER, type Transit } from "../support/transit.ts";

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

const SERVER = `require("http").createServer((_, answer) => answer.end("served")).listen(8080, "::")`;

/** Asks from addresses that are in no network around the router. */
async function assertServed({ origin }: Transit): Promise<void> {
  for (const [at, from] of FAR.entries()) {
    const host = at === 0 ? CLIENT[0] : `[${CLIENT[1]}]`;
    const retried = ["--retry", "5", "--retry-connrefused", "--retry-delay", "1"];
    const args = ["-sS", "--max-time", "4", ...retried, "--interface", from, `http://${host}:8080/`];
    assert.equal(await origin.run("curl", ...args), "served");
  }
}

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
    await t.test("a server of the LAN is reached from outside", async () => {
      client.start(...node, "-e", SERVER);
      await assertServed(row);
      for (const [at, from] of FAR.entries())
        await row.origin.run("ping", "-c1", "-W1", "-I", from, CLIENT[at] as string);
    });
    await t.test("networks around the router are not captured", async () => {
      await row.arrivals.forget();
      await client.run("curl", "-sS", "--max-time", "4", `http://${ORIGIN[0]}/`);
      assert.equal(sourcesOf(await row.arrivals.list()), "kernel");
    });
    await t.test(
      "an open connection goes on where it began when its address is forgotten or learnt",
      async () => {
        await ask(row, "direct");
        const [inKernel, proxied] = [hold(row, NUMBERS.direct), hold(row, NUMBERS.timed)];
        await assertEchoes([...inKernel, ...proxied], "begun");
        await ask(row, "timed");
        await assertEchoes(proxied, "learnt");
        await api(router, "PATCH", "/configs", { mode: "global" });
        await api(router, "PATCH", "/configs", { mode: "rule" });
        await assertEchoes([...inKernel, ...proxied], "forgotten");
        for (const each of [...inKernel, ...proxied]) each.close();
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

test(
  "kernel-direct §4.2: a learnt address that equals a PROXY prefix is PROXY",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openWorld("equal");
    const prefixes = far(NUMBERS.direct).map((ip) => `"${ip}/${ip.includes(":") ? 128 : 32}"`);
    const tun = `${CLASSIFIER}, kernel-direct-ebpf-proxy: true, kernel-direct-ebpf-proxy-prefixes: [${prefixes.join()}]`;
    await using _ = await start(row, config({ tun }));
    await ask(row, "direct");
    assert.equal(await ways(row, NUMBERS.direct), "proxy");
  },
);

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

test("frames that are not classified pass uncounted", { skip, timeout: 60_000 }, async () => {
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
