/** `weir doctor -leaks` finds each way past a TUN that is made here, and none where there is none. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { link, openNetns, skipNetns, type Netns } from "../support/netns.ts";
import { talkTo } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("doctor-leaks", "nft");
const WEIR = join(import.meta.dirname, "../../bin/weir");
const SERVERS = join(import.meta.dirname, "../support/netns-leak-servers.ts");
/** Of the machine. */
const [LINE, LINE6] = ["192.0.2.2", "2001:db8::2"];
const [GATEWAY, GATEWAY6] = ["192.0.2.1", "2001:db8::1"];
const LAN_RESOLVER = "192.0.2.53";
const [FAR, FAR6] = ["198.51.100.1", "2001:db8:1::1"];
const PROXY = "198.51.100.70";
const [PROVIDER, PROVIDER6] = ["203.0.113.53", "2001:db8:2::53"];

interface Case {
  readonly name: string;
  /** Keys of `tun` beside `enable`; they replace those of a tight one. */
  readonly tun?: Readonly<Record<string, unknown>>;
  readonly rules?: readonly string[];
  readonly ipv6?: boolean;
  /** In /etc/resolv.conf. */
  readonly resolvers?: readonly string[];
  /** The leaks that are named, without the word "leak"; all else is well. */
  readonly leaks: readonly string[];
  /** In what each says. */
  readonly says?: RegExp;
}

const TIGHT = {
  "auto-route": true,
  "auto-redirect": true,
  "strict-route": true,
  "auto-detect-interface": true,
};
const BOUND = [LINE, "out"].map((to) => `STUN ${FAR}:3478 over UDP, IPv4 from a socket bound to ${to}`);
const BOUND6 = [LINE6, "out"].map((to) => `STUN ${FAR6}:3478 over UDP, IPv6 from a socket bound to ${to}`);
const BOUND_PAGES = [
  `page http://${FAR} over TCP, IPv4 from a socket bound to ${LINE}`,
  `page http://[${FAR6}] over TCP, IPv6 from a socket bound to ${LINE6}`,
];
const SIX = [
  `STUN ${FAR6}:3478 over UDP, IPv6`,
  ...BOUND6,
  `page http://[${FAR6}] over TCP, IPv6`,
  `page http://[${FAR6}] over TCP, IPv6 from a socket bound to ${LINE6}`,
];
const STUN4 = [`STUN ${FAR}:3478 over UDP, IPv4`, ...BOUND];
/** With strict-route nothing leaves by a socket that is bound to a device, whatever the rules say. */
const STUN_BY_ADDRESS = [...STUN4.slice(0, 2), ...SIX.slice(0, 2)];
const PAGES4 = [`page http://${FAR} over TCP, IPv4`, BOUND_PAGES[0] ?? ""];
const dns = (server: string) =>
  ["TCP", "UDP"].map((network) => `DNS ${server} over ${network}, IPv${server.includes(":") ? 6 : 4}`);

const CASES: readonly Case[] = [
  { name: "a tight set-up", leaks: [] },
  {
    name: "a tight set-up without IPv6 in the TUN",
    ipv6: false,
    resolvers: [PROVIDER],
    leaks: [],
  },
  {
    name: "IPv6 goes past a TUN that lacks it, without strict-route",
    ipv6: false,
    tun: { "strict-route": false },
    resolvers: [PROVIDER],
    leaks: [...SIX, BOUND[1] ?? ""],
    says: /passes weir by, and is answered/,
  },
  {
    name: "sockets bound to a device pass a TUN without strict-route",
    tun: { "strict-route": false },
    leaks: [BOUND[1] ?? "", BOUND6[1] ?? ""],
  },
  {
    name: "questions by IPv6 go past a TUN that lacks it",
    ipv6: false,
    tun: { "strict-route": false },
    resolvers: [PROVIDER6],
    leaks: [...SIX, BOUND[1] ?? "", ...dns(PROVIDER6)],
  },
  {
    name: "sockets bound to the line are not captured by ip rules alone",
    tun: { "auto-redirect": false },
    leaks: [...BOUND, ...BOUND6, ...BOUND_PAGES],
    says: new RegExp(`it saw (${LINE}|${LINE6})`),
  },
  {
    name: "STUN is left out by its port",
    tun: { "exclude-dst-port": [3478] },
    leaks: [...STUN4, ...SIX.slice(0, 3)],
    says: new RegExp(`it saw (${LINE}|${LINE6})`),
  },
  {
    name: "a rule leads STUN out directly",
    rules: ["DST-PORT,3478,DIRECT"],
    leaks: STUN_BY_ADDRESS,
    says: /lets it out by DIRECT \(DstPort,3478\)/,
  },
  {
    name: "a rule leads the page out directly",
    rules: [`AND,((IP-CIDR,${FAR}/32),(NETWORK,TCP)),DIRECT`],
    leaks: PAGES4,
    says: /lets it out by DIRECT/,
  },
  {
    name: "the system's resolver is in the LAN, and questions are not taken",
    tun: { "dns-hijack": [] },
    resolvers: [LAN_RESOLVER],
    leaks: dns(LAN_RESOLVER),
    says: /passes weir by/,
  },
  {
    name: "the provider's resolver is left out of the TUN",
    tun: { "route-exclude-address": [`${PROVIDER}/32`], "auto-redirect": false, "strict-route": true },
    leaks: [...dns(PROVIDER), ...BOUND, ...BOUND6, ...BOUND_PAGES],
  },
  {
    name: "a rule sends questions to the provider's resolver",
    tun: { "dns-hijack": [] },
    rules: ["DST-PORT,53,DIRECT"],
    leaks: [PROVIDER, PROVIDER6].flatMap(dns),
    says: /lets it out by DIRECT/,
  },
  {
    name: "the user's programs are left out",
    tun: { "exclude-uid": [0] },
    leaks: [...STUN4, ...PAGES4, ...SIX, ...[PROVIDER, PROVIDER6].flatMap(dns)],
  },
];

interface World extends AsyncDisposable {
  readonly near: Netns;
}

async function openWorld(resolvers: readonly string[]): Promise<World> {
  await using undo = new AsyncDisposableStack();
  const far = undo.use(await openNetns("far"));
  const near = undo.use(await openNetns("near", resolvers.map((each) => `nameserver ${each}\n`).join("")));
  await link(
    { netns: near, device: "out", addresses: [`${LINE}/24`, `${LINE6}/64`] },
    { netns: far, device: "in", addresses: [`${GATEWAY}/24`, `${LAN_RESOLVER}/24`, `${GATEWAY6}/64`] },
  );
  await near.ip(`route add default via ${GATEWAY}`, `-6 route add default via ${GATEWAY6}`);
  const addresses = [FAR, FAR6, PROVIDER, PROVIDER6, LAN_RESOLVER];
  for (const ip of [FAR, PROXY, PROVIDER]) await far.ip(`address add ${ip}/32 dev lo`);
  for (const ip of [FAR6, PROVIDER6]) await far.ip(`address add ${ip}/128 dev lo nodad`);
  const node = [process.execPath, "--disable-warning=ExperimentalWarning", SERVERS, ...addresses];
  await talkTo(far, node, undo).nextLine();
  const proxy = `listeners: [{ name: s, type: socks, listen: ${PROXY}, port: 1080 }]\nipv6: true\nrules: ["MATCH,DIRECT"]\n`;
  undo.use(await startCore(proxy, { prefix: far.prefix }));
  const owned = undo.move();
  return { near, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const configText = ({ tun = {}, rules = [], ipv6 = true }: Case): string => `
external-controller: 127.0.0.1:9090
secret: s3cret
ipv6: ${ipv6}
tun: ${JSON.stringify({ enable: true, "dns-hijack": ["any:53"], ...TIGHT, ...tun })}
dns: { enable: true, ipv6: ${ipv6}, enhanced-mode: redir-host, nameserver: ["tcp://${FAR}#far"] }
proxies: [{ name: far, type: socks5, server: ${PROXY}, port: 1080, udp: true }]
rules: ${JSON.stringify([...rules, "MATCH,far"])}
`;

interface Finding {
  readonly what: string;
  readonly level: string;
  readonly found: string;
  readonly meaning?: string;
  readonly advice?: string;
}

async function doctor(near: Netns, home: string): Promise<{ all: readonly Finding[]; code: number }> {
  const named = [
    "-stun",
    `${FAR},[${FAR6}]:3478`,
    "-page",
    `http://${FAR}/,http://[${FAR6}]/`,
    "-name",
    "site.test",
  ];
  const [program = "", ...words] = [...near.prefix, WEIR, "doctor", "-d", home, "-leaks", "-json", ...named];
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  const [chunks, [code]] = await Promise.all([
    child.stdout.setEncoding("utf8").toArray(),
    once(child, "exit"),
  ]);
  const lines = chunks.join("").trim().split("\n");
  return { all: lines.map((line) => JSON.parse(line) as Finding), code: Number(code) };
}

for (const each of CASES) {
  const { name, leaks, says, resolvers = [PROVIDER, PROVIDER6] } = each;
  test(`${name}: ${leaks.length} lines`, { skip, timeout: 300_000 }, async () => {
    await using world = await openWorld(resolvers);
    await using core = await startCore(configText(each), { prefix: world.near.prefix });
    const { all, code } = await doctor(world.near, core.home);
    const wrong = all.filter(({ level }) => level !== "ok");
    assert.deepEqual(
      wrong.map(({ what, level }) => `${level} ${what}`).toSorted(),
      leaks.map((leak) => `error leak: ${leak}`).toSorted(),
      all.map((finding) => JSON.stringify(finding)).join("\n"),
    );
    for (const { found, meaning, advice } of wrong) {
      if (says !== undefined) assert.match(found, says);
      assert.ok(meaning && advice);
    }
    assert.equal(all.length, 10 + 2 * resolvers.length);
    assert.equal(code, leaks.length > 0 ? 1 : 0);
  });
}

test("no weir runs: that is what it says", { skip, timeout: 300_000 }, async () => {
  await using world = await openWorld([PROVIDER]);
  const core = await startCore(configText({ name: "", leaks: [] }), { prefix: world.near.prefix });
  await using _ended = core;
  await core.stop();
  writeFileSync(join(core.home, "config.yaml"), configText({ name: "", leaks: [] }));
  const { all, code } = await doctor(world.near, core.home);
  assert.deepEqual(
    all.map(({ what, level }) => `${level} ${what}`),
    ["error leak test"],
  );
  assert.match(all[0]?.found ?? "", /cannot be asked/);
  assert.equal(code, 1);
});
