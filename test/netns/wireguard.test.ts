/** Clients whose TCP and UDP goes through a WireGuard node, with a server of another program at the far end. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { capture } from "../support/netns-captured.ts";
import { skipNetns } from "../support/netns.ts";
import { leftovers, openRow, ORIGIN, type Row } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { deviceName, keyPair, startWireGuardGo } from "../support/wireguard-go.ts";

const skip = skipNetns("wireguard", "nft", "curl", "wireguard-go");
const PORT = 51_820;
/** The server's addresses in the tunnel, which nothing else leads to. */
const FAR = ["10.77.0.1", "fd77::1"] as const;
const NEAR = ["10.77.0.2", "fd77::2"] as const;

const [server, client, presharedKey] = [keyPair(), keyPair(), randomBytes(32)];

const node = (publicKey: Buffer, more = "") => `
  - name: far
    type: wireguard
    server: ${ORIGIN[0]}
    port: ${PORT}
    private-key: ${client.privateKey.toString("base64")}
    public-key: ${publicKey.toString("base64")}
    pre-shared-key: ${presharedKey.toString("base64")}
    ip: ${NEAR[0]}
    ipv6: ${NEAR[1]}/128
    udp: true
${more}`;

const config = (proxy: string) => `
tproxy-port: 7893
mixed-port: 7890
allow-lan: true
routing-mark: 6666
interface-name: up0
proxies: ${proxy}
rules: ["MATCH,far"]
`;

const serve = ({ origin }: Row, device: string) =>
  startWireGuardGo(origin, {
    device,
    keys: server,
    port: PORT,
    addresses: [`${FAR[0]}/24`, `${FAR[1]}/64`],
    client: { publicKey: client.publicKey, presharedKey, allowed: [`${NEAR[0]}/32`, `${NEAR[1]}/128`] },
  });

test("TCP and UDP go through the tunnel", { skip, timeout: 240_000 }, async (t) => {
  await using row = await openRow("wg");
  await capture(row, "tproxy");
  await using _ = await serve(row, deviceName());
  await using core = await startCore(config(node(server.publicKey)), { prefix: row.router.prefix });
  const curl = (from: typeof row.client, ...args: readonly string[]) =>
    from.run("curl", "-sSf", "--max-time", "15", ...args);

  for (const [at, far] of FAR.entries()) {
    await t.test(`IPv${at === 0 ? 4 : 6}: 200 connections at once`, async () => {
      assert.equal(await row.near("many", far, 7, 200), "200 echoed");
    });
    await t.test(`IPv${at === 0 ? 4 : 6}: datagrams of every size`, async () => {
      for (const bytes of [0, 1, 1_300, 9_000])
        assert.equal(await row.near("udp", far, 7, bytes), `echo of ${bytes}`);
    });
  }
  await t.test("what was open goes on behind a reload", async () => {
    const held = row.talk("hold", FAR[0], 7);
    const both = async (line: string) => {
      held.say(line);
      const got = [await held.nextLine(), await held.nextLine()];
      assert.deepEqual(got.toSorted(), [`tcp ${line}`, `udp 7:${line}`]);
    };
    await both("before");
    await core.reload(`${config(node(server.publicKey))}\n# another file\n`);
    assert.equal(await row.near("many", FAR[0], 7, 20), "20 echoed");
    await both("behind");
    held.close();
  });
  await t.test("names are looked up through the tunnel where the node has servers", async () => {
    const proxied = ["-x", "socks5h://127.0.0.1:7890", "http://www.origin.test/"];
    await assert.rejects(curl(row.router, ...proxied)); // nothing here knows the name
    const remote = node(server.publicKey, `    remote-dns-resolve: true\n    dns: [${FAR[0]}]\n`);
    await core.reload(config(remote.replace("udp: true", "udp: false"))); // which is of clients alone
    assert.match(await curl(row.router, ...proxied), /^hello to (::ffff:)?198\.51\.100\.2$/);
  });
  await t.test(
    "a datagram of one byte from another address at the port of the tunnel costs nothing",
    async () => {
      const sockets = await row.router.run("ss", "-Hnua");
      const ports = [...sockets.matchAll(/:(\d+)\s+\S+:\*/g)].map(([, port]) => port);
      assert.ok(ports.length > 0, sockets);
      for (const port of ports)
        await row.origin.run("bash", "-c", `printf x > /dev/udp/198.51.100.1/${port}`);
      assert.equal(await row.near("many", FAR[0], 7, 20), "20 echoed");
    },
  );
  assert.doesNotMatch(core.output(), /level=(error|fatal)|a fault of weir/);
});

test("another key at the server, and no server: the dial says so", { skip, timeout: 120_000 }, async () => {
  await using row = await openRow("wg");
  await using _ = await serve(row, deviceName());
  await using core = await startCore(config(node(keyPair().publicKey)), { prefix: row.router.prefix });
  await assert.rejects(
    row.router.run("curl", "-sSf", "--max-time", "15", "-x", "http://127.0.0.1:7890", `http://${FAR[0]}/`),
  );
  await core.shows(
    /198\.51\.100\.2:51820 does not answer the handshake: are its address and both keys right\?/,
  );
});

test("a server that begins anew is found again", { skip, timeout: 120_000 }, async () => {
  await using row = await openRow("wg");
  await capture(row, "tproxy");
  await using stack = new AsyncDisposableStack();
  const first = await serve(row, deviceName());
  await using core = await startCore(config(node(server.publicKey)), { prefix: row.router.prefix });
  assert.equal(await row.near("many", FAR[0], 7, 20), "20 echoed");
  await first[Symbol.asyncDispose]();
  stack.use(await serve(row, deviceName()));
  // It is a quarter of a minute until keys that bring no answer are known to be of no use.
  const isFound = () =>
    row.near("many", FAR[0], 7, 1).then(
      (said) => said === "1 echoed",
      () => false,
    );
  await until("an answer of the second server", isFound, { withinMs: 60_000 });
  assert.doesNotMatch(core.output(), /level=(error|fatal)/);
});

test(
  "without the right to have a network of its own the dial says what is needed",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openRow("wg");
    const prefix = [...row.router.prefix, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
    await using core = await startCore(config(node(server.publicKey)), { prefix });
    await assert.rejects(
      row.router.run("curl", "-sSf", "--max-time", "15", "-x", "http://127.0.0.1:7890", `http://${FAR[0]}/`),
    );
    await core.shows(
      /no network of its own: unshare: EPERM \(needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN\)/,
    );
  },
);

test("nothing is left behind", { skip }, () => {
  assert.deepEqual(leftovers("wg"), []);
});
