/** Who may reach what through the proxy: local programs, clients of the LAN, users from elsewhere; every spelling, every way in. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Ask } from "../support/netns-reach.ts";
import { skipNetns } from "../support/netns.ts";
import { openRoutedRow } from "../support/netns-far-away.ts";
import { BY, every, openWorld, SERVICE, textsOf, type World } from "../support/netns-reach-world.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("reach");

const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const SECRET = "c0ntr0ller";
const CONTROLLER = 9090;
const LAN = ["203.0.113.1", 7890] as const;
const LOCAL = ["127.0.0.1", 7890] as const;

/** What means this machine only, and whether a local program gets there by it (some are no spelling to the resolver). */
const SPELLINGS: readonly (readonly [host: string, forLocal: boolean])[] = [
  ["127.0.0.1", true],
  ["127.0.0.2", true],
  ["127.255.255.254", true],
  ["127.1", false],
  ["2130706433", false],
  ["0x7f000001", false],
  ["0177.0.0.1", false],
  ["0.0.0.0", true],
  ["localhost", true],
  ["LOCALHOST.", true],
  ["loop.test", true],
  ["zero.test", true],
  ["host.test", true],
  ["::1", true],
  ["::", true],
  ["::ffff:127.0.0.1", true],
  ["::ffff:7f00:1", true],
  ["169.254.1.1", true],
  ["local.test", true],
];

const config = (more = "", rules = "") => `
mixed-port: ${LAN[1]}
allow-lan: true
external-controller: 0.0.0.0:${CONTROLLER}
secret: ${SECRET}
log-level: debug
${more}
dns: { enable: true, ipv6: true, nameserver: ["127.0.0.1:5353"] }
hosts: { host.test: 127.0.0.1 }
listeners:
  - { name: in-second, type: mixed, listen: 127.0.0.1, port: 7110, proxy: DIRECT }
  - { name: in-vless, type: vless, listen: 0.0.0.0, port: 7101, allow-insecure: true, users: [{ username: ada, uuid: ${UUID} }] }
  - { name: in-vmess, type: vmess, listen: 0.0.0.0, port: 7102, users: [{ username: ada, uuid: ${UUID}, alterId: 0 }] }
  - { name: in-ss, type: shadowsocks, listen: 0.0.0.0, port: 7103, cipher: aes-128-gcm, password: pass, udp: true }
proxies: [{ name: second, type: socks5, server: 127.0.0.1, port: 7110 }]
rules: [${rules}"DOMAIN,second.test,second", "MATCH,DIRECT"]
`;

/** In the client's namespace: a port for each protocol. */
const FAR = `
log-level: info
listeners:
  - { name: vless, type: mixed, listen: 127.0.0.1, port: 7201, udp: true, proxy: vless }
  - { name: vmess, type: mixed, listen: 127.0.0.1, port: 7202, udp: true, proxy: vmess }
  - { name: ss, type: mixed, listen: 127.0.0.1, port: 7203, udp: true, proxy: ss }
proxies:
  - { name: vless, type: vless, server: 203.0.113.1, port: 7101, uuid: ${UUID}, udp: true }
  - { name: vmess, type: vmess, server: 203.0.113.1, port: 7102, uuid: ${UUID}, alterId: 0, cipher: auto, udp: true }
  - { name: ss, type: ss, server: 203.0.113.1, port: 7103, cipher: aes-128-gcm, password: pass, udp: true }
rules: ["MATCH,DIRECT"]
`;
const REMOTE_PORTS = [7201, 7202, 7203];

const OVER_TCP = BY.filter((by) => by !== "udp");

async function checkReach(t: TestContext, { row, ask }: World): Promise<void> {
  const { client, router } = row;
  const hosts = SPELLINGS.map(([host]) => host);
  await t.test("a local program reaches every service of its machine", async () => {
    const asks = every(
      LOCAL,
      SPELLINGS.flatMap(([host, forLocal]) => (forLocal ? [host] : [])),
    );
    assert.deepEqual(await ask(router, asks), textsOf(asks));
    const own = [CONTROLLER, 7890].flatMap((port) =>
      every(LOCAL, ["127.0.0.1", "203.0.113.1"], port, OVER_TCP),
    );
    assert.deepEqual(await ask(router, own), textsOf(own));
  });
  await t.test("a client of the LAN reaches none of what is for local programs", async () => {
    assert.deepEqual(await ask(client, every(LAN, hosts)), []);
  });
  await t.test("nor the Controller and weir's own listeners, at any address of the machine", async () => {
    const own = [...hosts, "203.0.113.1", "198.51.100.1", "own.test"];
    const ports = [CONTROLLER, LAN[1], 7101];
    assert.deepEqual(
      await ask(
        client,
        ports.flatMap((port) => every(LAN, own, port, OVER_TCP)),
      ),
      [],
    );
  });
  await t.test("nor by a node that is a listener of weir's own: it stays the client that it is", async () => {
    const asks = every(LAN, ["second.test"], SERVICE, OVER_TCP);
    assert.deepEqual(await ask(client, asks), []);
    const local = every(LOCAL, ["second.test"], SERVICE, OVER_TCP);
    assert.deepEqual(await ask(router, local), textsOf(local));
  });
  await t.test("it reaches the LAN, the machine's other services there, and the world", async () => {
    const asks = every(LAN, [
      "203.0.113.1",
      "own.test",
      "10.9.9.2",
      "private.test",
      "198.51.100.2",
      "both.test",
    ]);
    assert.deepEqual(await ask(client, asks), textsOf(asks));
  });
  for (const port of REMOTE_PORTS)
    await t.test(`users from elsewhere, ${port}: nothing of the machine, nothing private`, async () => {
      const proxy = ["127.0.0.1", port] as const;
      const all = [...hosts, "10.9.9.2", "private.test"];
      assert.deepEqual(await ask(client, every(proxy, all)), []);
      assert.deepEqual(await ask(client, every(proxy, ["203.0.113.1"], CONTROLLER, OVER_TCP)), []);
      const world = every(proxy, ["198.51.100.2", "far.test", "both.test"]);
      assert.deepEqual(await ask(client, world), textsOf(world));
    });
}

for (const relay of ["auto", "portable"])
  test(`relay: ${relay}: what is for local programs stays theirs`, { skip, timeout: 180_000 }, async (t) => {
    await using world = await openWorld(`reach-${relay}`);
    const { row, ask } = world;
    const { router, client } = row;
    await using core = await startCore(config(`relay: ${relay}`), { prefix: router.prefix });
    await using _far = await startCore(FAR, { prefix: client.prefix });
    await checkReach(t, world);

    await t.test("a rule that names it opens a private address to users from elsewhere", async () => {
      const asks = REMOTE_PORTS.flatMap((port) => every(["127.0.0.1", port], ["10.9.9.2", "private.test"]));
      for (const rule of [
        '"IP-CIDR,10.9.9.0/24,DIRECT"',
        '"AND,((DST-PORT,8080),(IP-CIDR,10.9.9.2/32)),DIRECT"',
      ]) {
        await core.reload(config(`relay: ${relay}`, `${rule},`));
        assert.deepEqual(await ask(client, asks), textsOf(asks), rule);
      }
      await core.reload(config(`relay: ${relay}`, '"DOMAIN,private.test,DIRECT",'));
      assert.deepEqual(await ask(client, asks), textsOf(asks.filter(({ host }) => host === "private.test")));
      for (const rule of [
        '"IP-CIDR,0.0.0.0/0,DIRECT"',
        '"DOMAIN-KEYWORD,private,DIRECT"',
        '"NETWORK,tcp,DIRECT"',
      ]) {
        await core.reload(config(`relay: ${relay}`, `${rule},`));
        assert.deepEqual(await ask(client, asks), [], rule);
      }
    });
    await t.test("allow-loopback-from-lan opens what is for local programs, and nothing else", async () => {
      await core.reload(config(`relay: ${relay}\nallow-loopback-from-lan: true`));
      const lan = every(LAN, ["127.0.0.1", "loop.test", "0.0.0.0", "169.254.1.1"]);
      assert.deepEqual(await ask(client, lan), textsOf(lan));
      const remote = REMOTE_PORTS.flatMap((port) =>
        every(["127.0.0.1", port], ["127.0.0.1", "private.test"]),
      );
      const open = textsOf(remote.filter(({ host }) => host === "127.0.0.1"));
      assert.deepEqual(await ask(client, remote), open);
    });
    assert.doesNotMatch(core.output(), /level=(error|fatal)/);
  });

const TUN = `
tun: { enable: true, device: weir-tun0, stack: system, auto-route: true, auto-redirect: false, auto-detect-interface: true }
`;

test("a TUN: a fake address leads a client of the LAN no further", { skip, timeout: 120_000 }, async () => {
  await using world = await openWorld("reach-tun", openRoutedRow);
  const { row, ask } = world;
  const dns = "enhanced-mode: fake-ip, listen: 0.0.0.0:53, nameserver";
  const text = config(TUN).replace("nameserver", dns);
  await using core = await startCore(text, { prefix: row.router.prefix });
  const names = ["loop.test", "zero.test", "local.test", "both.test", "far.test", "private.test"];
  const asks = names.map((host): Ask => ({ by: "plain", proxy: ["203.0.113.1", 53], host, port: SERVICE }));
  assert.deepEqual(await ask(row.client, asks), textsOf(asks.slice(3)));
  const local = asks.filter(({ host }) => host !== "local.test"); // dials are bound to the default interface
  assert.deepEqual(await ask(row.router, local), textsOf(local));
  await core.shows(/loop\.test:8080 .*127\.0\.0\.1:8080 is an address of this machine only/);
});
