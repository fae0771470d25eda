/** Names and addresses in the running program: what a node is asked for, and whose word counts. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { tlsClientHello } from "../support/client-hello.ts";
import { addressesIn, askUdp } from "../support/dns-client.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openRecordingSocks } from "../support/recording-socks.ts";
import { socksAssociate, socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";
import { address, always, openScripted, reply } from "./dns-kit.ts";

const node = (port: number) => `{ name: N, type: socks5, server: 127.0.0.1, port: ${port}, udp: true }`;

/** Opens a connection, sends, and waits for the echo. Then it is closed. */
async function exchange(proxyPort: number, host: string, port: number, bytes: Uint8Array): Promise<void> {
  const { client, status } = await socksConnect(proxyPort, host, port);
  using _client = client;
  assert.equal(status, 0, `${host}:${port}`);
  client.send(bytes);
  assert.deepEqual(await client.read(bytes.length), Buffer.from(bytes));
}

async function datagram(proxyPort: number, host: string, port: number): Promise<void> {
  using udp = await socksAssociate(proxyPort);
  udp.send(Buffer.from("question"), host, port);
  assert.equal((await udp.next()).payload.toString(), "question");
}

const SPOKEN = Buffer.from("spoken");

for (const mode of ["fake-ip", "redir-host"])
  test(`${mode}: a name that one client wrote into its hello says nothing of the address to another`, async () => {
    await using proxy = await openRecordingSocks();
    await using server = await openScripted(always("203.0.113.9"));
    const [mixed, listen] = (await freePorts(2)) as [number, number];
    const config = (override: boolean) => `
mixed-port: ${mixed}
proxies: [${node(proxy.port)}]
dns: { enable: true, listen: 127.0.0.1:${listen}, enhanced-mode: ${mode}, nameserver: [127.0.0.1:${server.port}] }
sniffer: { enable: true, override-destination: ${override}, sniff: { TLS: { ports: [443] } } }
rules: ["DOMAIN,attacker.example,N", "DST-PORT,22,N", "DST-PORT,443,N", "MATCH,REJECT"]
`;
    await using core = await startCore(config(true));
    const hello = await tlsClientHello("attacker.example");
    await exchange(mixed, "203.0.113.50", 443, hello);
    await exchange(mixed, "203.0.113.50", 22, SPOKEN);
    await core.reload(config(false));
    await exchange(mixed, "203.0.113.50", 443, hello);
    await exchange(mixed, "203.0.113.50", 443, hello);
    await exchange(mixed, "203.0.113.50", 22, SPOKEN);
    assert.deepEqual(proxy.asked, [
      "tcp attacker.example:443",
      "tcp 203.0.113.50:22",
      "tcp 203.0.113.50:443",
      "tcp 203.0.113.50:443",
      "tcp 203.0.113.50:22",
    ]);
  });

test("dots behind a name or an address lead past no rule", async () => {
  await using origin = await openTcpOrigin(echo);
  await using server = await openScripted(always("127.0.0.1"));
  const [mixed] = (await freePorts(1)) as [number];
  await using _core = await startCore(`
mixed-port: ${mixed}
dns: { enable: true, nameserver: [127.0.0.1:${server.port}] }
rules: ["DOMAIN,open.test,DIRECT", "DOMAIN-SUFFIX,blocked.test,REJECT", "IP-CIDR,127.0.0.0/8,REJECT,no-resolve", "MATCH,DIRECT"]
`);
  const statusOf = async (host: string): Promise<number | undefined> => {
    const asked = request({ port: mixed, method: "CONNECT", path: `${host}:${origin.port}` }).end();
    const [response, socket] = (await once(asked, "connect")) as [IncomingMessage, Socket];
    socket.destroy();
    return response.statusCode;
  };
  assert.equal(await statusOf("open.test.."), 200);
  for (const host of ["blocked.test", "blocked.test.", "a.blocked.test..", "127.0.0.1", "127.0.0.1."])
    assert.equal(await statusOf(host), 403, host);
});

test("an address of hosts is what a node is asked for, however the name became known", async () => {
  await using proxy = await openRecordingSocks();
  await using server = await openScripted(always("203.0.113.9"));
  const [mixed, listen, controller] = (await freePorts(3)) as [number, number, number];
  await using _core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies: [${node(proxy.port)}]
hosts: { pinned.test: 203.0.113.77, alias.test: pinned.test, other.test: elsewhere.test }
dns:
  enable: true
  listen: 127.0.0.1:${listen}
  nameserver: [127.0.0.1:${server.port}]
sniffer: { enable: true, sniff: { TLS: { ports: [443] } } }
rules: ["IP-CIDR,203.0.113.77/32,N,no-resolve", "DOMAIN,elsewhere.test,N", "MATCH,REJECT"]
`);
  const { client } = await socksConnect(mixed, "pinned.test", 80);
  using _client = client;
  const shown = (await (await fetch(`http://127.0.0.1:${controller}/connections`)).json()) as {
    connections: { metadata: Record<string, string> }[];
  };
  const { host, destinationIP, dnsMode } = shown.connections[0]?.metadata ?? {};
  assert.deepEqual([host, destinationIP, dnsMode], ["pinned.test", "203.0.113.77", "hosts"]);
  await exchange(mixed, "alias.test", 81, SPOKEN);
  await exchange(mixed, "other.test", 82, SPOKEN);
  await exchange(mixed, "198.51.100.1", 443, await tlsClientHello("pinned.test"));
  assert.deepEqual(addressesIn(await askUdp(listen, "pinned.test")), ["203.0.113.77"]);
  await exchange(mixed, "203.0.113.77", 83, SPOKEN);
  await datagram(mixed, "pinned.test", 84);
  assert.deepEqual(proxy.asked, [
    "tcp 203.0.113.77:80",
    "tcp 203.0.113.77:81",
    "tcp elsewhere.test:82",
    "tcp 203.0.113.77:443",
    "tcp 203.0.113.77:83",
    "udp 203.0.113.77:84",
  ]);
});

test("redir-host with direct-nameserver: DIRECT asks it for the name again; private addresses have names", async () => {
  await using tcp = await openTcpOrigin(echo);
  await using udp = await openUdpEcho();
  await using main = await openScripted(always("10.9.8.7"));
  await using direct = await openScripted(always("127.0.0.1"));
  const [mixed, listen] = (await freePorts(2)) as [number, number];
  await using _core = await startCore(`
mixed-port: ${mixed}
dns:
  enable: true
  listen: 127.0.0.1:${listen}
  nameserver: [127.0.0.1:${main.port}]
  direct-nameserver: [127.0.0.1:${direct.port}]
rules: ["DOMAIN,app.test,DIRECT", "MATCH,REJECT"]
`);
  assert.deepEqual(addressesIn(await askUdp(listen, "app.test")), ["10.9.8.7"]);
  await exchange(mixed, "10.9.8.7", tcp.port, SPOKEN);
  await datagram(mixed, "10.9.8.7", udp.port);
  assert.equal(direct.asked[0]?.questions[0]?.name, "app.test");
});

test("dns.ipv6 false decides the answers to clients; names are still dialled and matched by IPv6", async () => {
  await using origin = await openTcpOrigin(echo, "::1" as Ip);
  await using server = await openScripted((query) => {
    const [question] = query.questions;
    return reply(query, question?.type === 28 ? [address(question.name, "::1")] : []);
  });
  const [mixed, listen] = (await freePorts(2)) as [number, number];
  await using _core = await startCore(`
mixed-port: ${mixed}
dns: { enable: true, ipv6: false, listen: 127.0.0.1:${listen}, nameserver: [127.0.0.1:${server.port}] }
rules: ["IP-CIDR6,::1/128,DIRECT", "MATCH,REJECT"]
`);
  assert.deepEqual(addressesIn(await askUdp(listen, "six.test", 28)), []);
  await exchange(mixed, "six.test", origin.port, SPOKEN);
});
