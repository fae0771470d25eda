/** No question leaves for a server that is not configured, whatever the mode; `ipv6: false` is meant. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { link, openNetns, skipNetns, watchDepartures } from "../support/netns.ts";
import type { Departures, Netns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("dns-leak", "nft", "dnsmasq", "dig", "curl");

const MAIN = "10.77.0.53";
const FOR_PROXIES = "10.77.0.54";
/** In resolv.conf, and nowhere in the configuration. */
const SYSTEM = "10.77.0.99";
/** A server that rules lead through the proxy. */
const BEHIND_PROXY = "10.78.0.53";
const ORIGIN = "10.77.0.80";
const ORIGIN6 = "fd77::80";
const PROXY = "10.77.0.70";
const [MIXED, DNS, PROXY_PORT] = [7890, 1053, 1080];

let box: Netns;
let world: Netns;
let departures: Departures;
const owned = new AsyncDisposableStack();

before(
  async () => {
    if (skip !== false) return;
    world = owned.use(await openNetns("world"));
    box = owned.use(await openNetns("box", `nameserver ${SYSTEM}\n`));
    const here = [MAIN, FOR_PROXIES, SYSTEM, BEHIND_PROXY, ORIGIN, PROXY].map((ip) => `${ip}/32`);
    await link(
      { netns: box, device: "out", addresses: ["10.77.0.1/24", "fd77::1/64"] },
      { netns: world, device: "in", addresses: ["10.77.0.2/24", "fd77::2/64", ...here, `${ORIGIN6}/128`] },
    );
    await box.ip("route add default via 10.77.0.2", "-6 route add default via fd77::2");
    departures = await watchDepartures(box);
    // Not --no-daemon: then it would serve one TCP client at a time, and no other meanwhile.
    const daemon = "dnsmasq --keep-in-foreground --no-resolv --no-hosts --user=root --pid-file=".split(" ");
    const answers = [
      ["site.test", ORIGIN],
      ["site.test", ORIGIN6],
      ["six.test", ORIGIN6],
      ["proxy.test", PROXY],
    ];
    world.start(...daemon, ...answers.map(([name, ip]) => `--address=/${name}/${ip}`));
    const serve =
      "require('net').createServer((s) => s.on('error', () => {}).end('HTTP/1.0 200 OK\\r\\n\\r\\nhi')).listen(80, '::')";
    world.start(process.execPath, "-e", serve);
    owned.use(
      await startCore(
        `listeners: [{ name: s, type: socks, listen: ${PROXY}, port: ${PROXY_PORT} }]\nrules: ["MATCH,DIRECT"]\n`,
        {
          prefix: world.prefix,
        },
      ),
    );
    await untilAnswered(MAIN, 53);
  },
  { timeout: 60_000 },
);

after(() => owned.disposeAsync());

async function untilAnswered(server: string, port: number): Promise<void> {
  await box.run("dig", "+short", "+tries=20", "+time=1", `@${server}`, "-p", String(port), "site.test");
  await departures.forget();
}

interface Case {
  readonly mode: "fake-ip" | "redir-host";
  readonly respectRules: boolean;
  readonly ipv6: boolean;
}

function configText({ mode, respectRules, ipv6 }: Case): string {
  return `
mixed-port: ${MIXED}
ipv6: ${ipv6}
dns:
  enable: true
  listen: 127.0.0.1:${DNS}
  ipv6: ${ipv6}
  enhanced-mode: ${mode}
  respect-rules: ${respectRules}
  nameserver: [${respectRules ? BEHIND_PROXY : MAIN}]
  default-nameserver: [${MAIN}]
  proxy-server-nameserver: [${FOR_PROXIES}]
proxies:
  - { name: far, type: socks5, server: proxy.test, port: ${PROXY_PORT}, udp: true }
rules:
  - IP-CIDR,${BEHIND_PROXY}/32,far,no-resolve
  - DOMAIN,www.far.test,far
  - MATCH,DIRECT
`;
}

const ask = async (name: string, type: string): Promise<readonly string[]> => {
  const printed = await box.run(
    "dig",
    "+short",
    "+tries=1",
    "+time=8",
    "@127.0.0.1",
    "-p",
    String(DNS),
    name,
    type,
  );
  return printed.split("\n").filter((line) => line !== "");
};

/** What the page says; "" where it cannot be fetched. */
const get = (url: string): Promise<string> =>
  box.run("curl", "-sS", "--max-time", "10", "--socks5-hostname", `127.0.0.1:${MIXED}`, url).catch(() => "");

test(
  "system: only its servers are asked, also by two questions at once",
  { skip, timeout: 60_000 },
  async () => {
    const plain = configText({ mode: "redir-host", respectRules: false, ipv6: true });
    const text = plain.replace(`nameserver: [${MAIN}]`, "nameserver: [system]");
    await using _core = await startCore(text, { prefix: box.prefix });
    await departures.forget();
    await Promise.all([ask("www.site.test", "A"), ask("www.site.test", "AAAA"), get("http://www.six.test/")]);
    const seen = await departures.list();
    assert.deepEqual(
      seen.filter((line) => line.endsWith(" 53")),
      [`udp ${SYSTEM} 53`],
    );
  },
);

for (const mode of ["fake-ip", "redir-host"] as const)
  for (const respectRules of [false, true])
    for (const ipv6 of [false, true])
      test(`${mode}, respect-rules ${respectRules}, ipv6 ${ipv6}`, { skip, timeout: 60_000 }, async () => {
        await using _core = await startCore(configText({ mode, respectRules, ipv6 }), { prefix: box.prefix });
        await departures.forget();
        const fake = mode === "fake-ip";
        assert.deepEqual(await ask("www.site.test", "A"), [fake ? "198.18.0.4" : ORIGIN]);
        assert.deepEqual(await ask("www.site.test", "AAAA"), fake || !ipv6 ? [] : [ORIGIN6]);
        assert.equal(await get("http://www.site.test/"), "hi");
        assert.equal(await get("http://www.six.test/"), ipv6 ? "hi" : "");
        assert.equal(await get(`http://[${ORIGIN6}]/`), ipv6 ? "hi" : "");
        assert.equal(await get("http://absent.example/"), "");
        const servers = respectRules
          ? [`tcp ${PROXY} ${PROXY_PORT}`, `udp ${FOR_PROXIES} 53`]
          : [`udp ${MAIN} 53`];
        const seen = await departures.list();
        const associations = respectRules ? seen.filter((line) => line.startsWith(`udp ${PROXY} `)) : [];
        const origins = [`tcp ${ORIGIN} 80`, ...(ipv6 ? [`tcp ${ORIGIN6} 80`] : [])];
        // Of a name with both families the faster connection wins, so IPv4 need not be seen where IPv6 is on.
        const others = seen.filter((line) => !origins.includes(line) && !associations.includes(line));
        assert.deepEqual(others, servers);
        if (!ipv6)
          assert.deepEqual(
            seen.filter((line) => line.includes("::")),
            [],
          );
        else assert.ok(seen.includes(`tcp ${ORIGIN6} 80`));
      });

test(
  "dns.md §16.12 with a routing mark every upstream packet carries it",
  { skip, timeout: 60_000 },
  async () => {
    await box.nft(`
table inet marks {
  set unmarked { type ipv4_addr . inet_proto; flags dynamic; size 64; }
  chain out {
    type filter hook output priority -200;
    oifname "lo" accept
    meta mark != 0x2a meta nfproto ipv4 update @unmarked { ip daddr . meta l4proto }
  }
}`);
    const settings = { mode: "redir-host", respectRules: false, ipv6: false } as const;
    const policy = `{ six.test: "tcp://${FOR_PROXIES}", proxy.test: system }`;
    const text = configText(settings).replace("dns:\n", `dns:\n  nameserver-policy: ${policy}\n`);
    await using _core = await startCore(`routing-mark: 42\n${text}`, { prefix: box.prefix });
    await departures.forget();
    assert.deepEqual(await ask("www.site.test", "A"), [ORIGIN]);
    assert.deepEqual(await ask("six.test", "A"), []);
    assert.deepEqual(await ask("proxy.test", "A"), [PROXY]);
    assert.equal(await get("http://www.site.test/"), "hi");
    const listed = await box.run("nft", "list", "set", "inet", "marks", "unmarked");
    const servers = (await departures.list()).filter((line) => line.endsWith(" 53"));
    await box.nft("delete table inet marks");
    assert.deepEqual(servers, [`tcp ${FOR_PROXIES} 53`, `udp ${MAIN} 53`, `udp ${SYSTEM} 53`]);
    assert.doesNotMatch(listed, /elements/);
  },
);
