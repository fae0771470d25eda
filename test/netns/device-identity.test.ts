/** Devices known by hardware address: policy, limit, rule and report follow them from address to address. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { link, openNetns, skipNetns, type Netns } from "../support/netns.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { talkTo } from "../support/netns-row.ts";
import { until } from "../support/until.ts";

const skip = skipNetns("device-identity", "curl", "ping");
const [PHONE, TABLET] = ["02:00:5e:00:53:01", "02:00:5e:00:53:02"];
const [LAN, LAN6] = ["192.168.1.1", "fd00:1::1"];
const [ORIGIN, PAGES, REFUSED] = ["198.51.100.2", 80, 81];
const BYTES = 1_000_000;
const BPS = 8_000_000;
/** A second at the limit, less the allowance for bursts. */
const LIMITED_S = 0.7;
const SERVE = `
const http = require("node:http");
for (const port of [${PAGES}, ${REFUSED}])
  http.createServer((_, response) => response.end(Buffer.alloc(${BYTES}))).listen(port, "${ORIGIN}", () => port === ${REFUSED} && console.log("ready"));
`;

const CONFIG = `
mixed-port: 7890
allow-lan: true
bind-address: "*"
ipv6: true
external-controller: 127.0.0.1:9090
secret: s3cret
traffic-control:
  enabled: true
  device-identity: neighbour
  leases: [dnsmasq.leases]
  devices: [{ id: phone, mac: "${PHONE}", download-bps: ${BPS} }]
rules: ["AND,((SRC-MAC,${PHONE}),(DST-PORT,${REFUSED})),REJECT", "MATCH,DIRECT"]
`;

interface World extends AsyncDisposable {
  readonly router: Netns;
  readonly phone: Netns;
  readonly tablet: Netns;
}

/** Two devices on a bridge of the router, and an origin behind it. */
async function openWorld(): Promise<World> {
  await using undo = new AsyncDisposableStack();
  const open = async (label: string) => undo.use(await openNetns(label));
  const [router, phone, tablet, origin] = [
    await open("router"),
    await open("phone"),
    await open("tablet"),
    await open("origin"),
  ];
  await router.ip("link add lan type bridge", "link set lan up");
  for (const [netns, mac, port] of [
    [phone, PHONE, "p0"],
    [tablet, TABLET, "p1"],
  ] as const) {
    await link({ netns, device: "eth", addresses: [] }, { netns: router, device: port, addresses: [] });
    await router.ip(`link set ${port} master lan`);
    await netns.ip(`link set eth address ${mac}`);
  }
  await router.ip(`address add ${LAN}/24 dev lan`, `address add ${LAN6}/64 dev lan nodad`);
  await link(
    { netns: router, device: "wan", addresses: ["198.51.100.1/24"] },
    { netns: origin, device: "in", addresses: [`${ORIGIN}/24`] },
  );
  await talkTo(origin, [process.execPath, "-e", SERVE], undo).nextLine();
  const owned = undo.move();
  return { router, phone, tablet, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function address(netns: Netns, ...addresses: readonly string[]): Promise<void> {
  await netns.ip("address flush dev eth");
  for (const each of addresses)
    await netns.ip(`address add ${each} dev eth${each.includes(":") ? " nodad" : ""}`);
}

/** Seconds; null: it was refused. */
async function fetchPage(netns: Netns, port: number, family: 4 | 6): Promise<number | null> {
  const proxy = `socks5://${family === 4 ? LAN : `[${LAN6}]`}:7890`;
  const asked = netns.run(
    "curl",
    "-sS",
    "-o",
    "/dev/null",
    "--max-time",
    "60",
    "-w",
    "%{time_total}",
    "--proxy",
    proxy,
    `http://${ORIGIN}:${port}/`,
  );
  return asked.then(Number, () => null);
}

interface Status {
  readonly policies: readonly {
    readonly policy: {
      readonly id: string;
      readonly host_name?: string;
      readonly addresses?: readonly string[];
    };
    readonly counters: { readonly download_bytes: number; readonly connections: number };
  }[];
}

async function ask(router: Netns, path: string): Promise<string> {
  return router.run("curl", "-sS", "-H", "Authorization: Bearer s3cret", `http://127.0.0.1:9090${path}`);
}

async function phoneOf(router: Netns): Promise<Status["policies"][number]> {
  const { policies } = JSON.parse(await ask(router, "/api/svc/traffic-control/status")) as Status;
  return policies.find(({ policy }) => policy.id === "phone") ?? assert.fail();
}

/** Each device by each family: the phone is counted, limited and refused, the tablet is not. */
async function checkDevices({ router, phone, tablet }: World): Promise<void> {
  for (const family of [4, 6] as const) {
    const before = await phoneOf(router);
    assert.ok(((await fetchPage(phone, PAGES, family)) ?? 0) > LIMITED_S, `limited by IPv${family}`);
    assert.equal(await fetchPage(phone, REFUSED, family), null, `refused by IPv${family}`);
    const counted = async () =>
      (await phoneOf(router)).counters.download_bytes - before.counters.download_bytes;
    await until("the phone's page is counted", async () => (await counted()) >= BYTES);
    const after = await counted();
    assert.notEqual(await fetchPage(tablet, PAGES, family), null);
    assert.notEqual(await fetchPage(tablet, REFUSED, family), null, "the tablet is not refused");
    assert.equal(await counted(), after, `the tablet is not counted by IPv${family}`);
  }
}

test("a device is followed by its hardware address", { skip, timeout: 300_000 }, async (t: TestContext) => {
  await using world = await openWorld();
  const { router, phone, tablet } = world;
  await address(phone, "192.168.1.20/24", "fd00:1::20/64");
  await address(tablet, "192.168.1.21/24", "fd00:1::21/64");
  await using core: Core = await startCore(CONFIG, {
    prefix: router.prefix,
    seed: (home) => writeFileSync(join(home, "dnsmasq.leases"), `1 ${PHONE} 192.168.1.20 pixel *\n`),
  });
  await t.test("at its first addresses", () => checkDevices(world));
  await t.test("the status names it, and the addresses that it has", async () => {
    const { policy } = await phoneOf(router);
    assert.equal(policy.host_name, "pixel");
    assert.ok(policy.addresses?.includes("192.168.1.20") && policy.addresses.includes("fd00:1::20"));
  });
  await t.test("at others, while another device has its old ones", async () => {
    await address(phone, "192.168.1.77/24", "fd00:1::7777/64");
    await address(tablet, "192.168.1.20/24", "fd00:1::20/64");
    const [four, six] = ["192.168.1.20", "fd00:1::20"];
    const belongs = async () => {
      const shown = await router.run("sh", "-c", `ip neigh show ${four}; ip -6 neigh show ${six}`);
      return shown.split(TABLET).length === 3;
    };
    await until("the router knows that", async () => {
      await router.run(
        "sh",
        "-c",
        `ip neigh flush ${four}; ip -6 neigh flush ${six}; ping -c1 -W2 ${four}; ping -6 -c1 -W2 ${six}; true`,
      );
      return belongs();
    });
    await checkDevices(world);
  });
  await t.test("after its entries went stale, and were deleted", async () => {
    const entry = `192.168.1.77 dev lan lladdr ${PHONE}`;
    await router.ip(`neigh replace ${entry} nud stale`);
    await checkDevices(world);
    await router.ip("neigh flush dev lan nud all");
    await checkDevices(world);
  });
  await t.test("its report goes on", async () => {
    const hour = Math.floor(Date.now() / 3_600_000) * 3600;
    const range = `key=device:phone&granularity=hour&from=${hour - 3600}&to=${hour + 7200}`;
    const report = await ask(router, `/api/svc/traffic-control/reports/summary?${range}`);
    assert.match(report, /"download_bytes":\d{7,}/, report);
  });
  assert.doesNotMatch(core.output(), /level=error/);
});

test("10,000 neighbours", { skip, timeout: 120_000 }, async (t: TestContext) => {
  await using world = await openWorld();
  const { router } = world;
  const COUNT = 10_000;
  const lines = Array.from({ length: COUNT }, (_, at) => {
    const [high, low] = [(at >> 8) & 255, at & 255].map((byte) => byte.toString(16).padStart(2, "0"));
    return `neigh add 10.0.${at >> 8}.${at & 255} lladdr 02:00:00:00:${high}:${low} nud permanent dev lan`;
  });
  const program = join(import.meta.dirname, "../support/netns-neighbours.ts");
  const folder = mkdtempSync(join(tmpdir(), "weir-neighbours-"));
  using _folder = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
  const batch = join(folder, "batch");
  writeFileSync(batch, lines.join("\n"));
  await router.run("ip", "-batch", batch);
  const printed = await router.run(
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    program,
    "10.0.39.15",
  );
  const { mac, size, openMs, lookupUs } = JSON.parse(printed) as {
    mac: string;
    size: number;
    openMs: number;
    lookupUs: number;
  };
  t.diagnostic(
    `${size} neighbours: ${openMs.toFixed(0)} ms until they are known, ${lookupUs.toFixed(2)} µs CPU a look-up`,
  );
  assert.equal(mac, "02:00:00:00:27:0f");
  assert.ok(size >= COUNT);
});
