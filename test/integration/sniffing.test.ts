/** Sniffing in the running program: clients ask for addresses, rules read the names that they give away. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { tuic } from "#protocols/tuic/index.ts";
import { messageOf, tlsClientHello } from "../support/client-hello.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openTestOutbound } from "../support/inbound-env.ts";
import { quicCertificate } from "../support/quic-tls.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { openTuicServer, TUIC_PASSWORD, TUIC_UUID } from "../support/tuic-server.ts";
import { cryptoFrame, initialPacket } from "../support/quic-initial.ts";
import { socksAssociate, socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";

interface Row {
  readonly metadata: Readonly<Record<"host" | "sniffHost" | "dnsMode" | "destinationIP", string>>;
  readonly rulePayload: string;
}

async function rows(controller: number): Promise<readonly Row[]> {
  const answer = await fetch(`http://127.0.0.1:${controller}/connections`);
  return ((await answer.json()) as { connections: Row[] }).connections;
}

function configText(mixed: number, controller: number, sniffed: number, more = ""): string {
  return `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
log-level: debug
hosts: { "*.test": 127.0.0.1 }
sniffer:
  enable: true
  sniff:
    HTTP: { ports: [${sniffed}], override-destination: false }
    TLS: { ports: [${sniffed}] }
    QUIC: { ports: [${sniffed}] }
${more}
rules:
  - DOMAIN,blocked.test,REJECT
  - DOMAIN-SUFFIX,test,DIRECT
  - IP-CIDR,127.0.0.0/8,DIRECT
  - MATCH,REJECT
`;
}

const request = (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

test("names in TLS and HTTP reach rules, dials and dashboards", async () => {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using origin = await openTcpOrigin(echo);
  await using _core = await startCore(configText(mixed, controller, origin.port));
  const { client, status } = await socksConnect(mixed, "127.0.0.1", origin.port);
  using _client = client;
  assert.equal(status, 0, "answered before it said anything");
  const hello = await tlsClientHello("open.test");
  for (const byte of hello.subarray(0, 20)) client.send(Uint8Array.of(byte));
  client.send(hello.subarray(20));
  assert.deepEqual(await client.read(hello.length), hello, "everything arrives, once and in order");
  const plain = await socksConnect(mixed, "127.0.0.1", origin.port);
  using _plain = plain.client;
  plain.client.send(request("plain.test"));
  await plain.client.until("\r\n\r\n");
  const shown = await rows(controller);
  assert.deepEqual(
    shown
      .map(({ metadata: { host, sniffHost, dnsMode } }) => [host, sniffHost, dnsMode].join(" "))
      .toSorted((a, b) => a.localeCompare(b)),
    [" plain.test normal", "open.test open.test hosts"],
  );
  assert.deepEqual(
    shown.map(({ rulePayload }) => rulePayload),
    ["test", "test"],
  );
  const blocked = await socksConnect(mixed, "127.0.0.1", origin.port);
  using _blocked = blocked.client;
  blocked.client.send(request("blocked.test"));
  assert.equal((await blocked.client.rest()).length, 0);
});

test("a server that speaks first waits on sniffed ports only, and not for ever", async () => {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const writeBanner = (socket: { write(text: string): unknown }) => void socket.write("SSH-2.0-server\r\n");
  await using sniffed = await openTcpOrigin(writeBanner);
  await using plain = await openTcpOrigin(writeBanner);
  await using core = await startCore(configText(mixed, controller, sniffed.port));
  const firstBytesAt = async (port: number) => {
    const { client } = await socksConnect(mixed, "127.0.0.1", port);
    using _client = client;
    return await client.until("\r\n"); // not sooner is it disposed of
  };
  await firstBytesAt(plain.port);
  assert.doesNotMatch(core.output(), /\[Sniffer\]/);
  await Promise.all(Array.from({ length: 6 }, () => firstBytesAt(sniffed.port)));
  for (let time = 0; time < 3; time++) assert.equal(await firstBytesAt(sniffed.port), "SSH-2.0-server\r\n");
  assert.equal(core.output().match(/\[Sniffer\] .* no name in time/g)?.length, 6);
});

test("QUIC: the name decides over datagrams, and answers come from the address that was asked", async () => {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using origin = await openUdpEcho();
  await using core = await startCore(configText(mixed, controller, origin.port));
  using udp = await socksAssociate(mixed);
  const hello = messageOf(await tlsClientHello("quic.test"));
  const flight = [
    initialPacket(cryptoFrame(120, hello.subarray(120))),
    initialPacket(cryptoFrame(0, hello.subarray(0, 120)), { number: 1 }),
  ];
  for (const datagram of flight) udp.send(datagram, "127.0.0.1", origin.port);
  for (const datagram of flight) {
    const { payload, from } = await udp.next();
    assert.deepEqual([payload.equals(datagram), from], [true, `127.0.0.1:${origin.port}`]);
  }
  assert.deepEqual(
    (await rows(controller)).map(({ metadata }) => metadata.sniffHost),
    ["quic.test"],
  );
  using other = await socksAssociate(mixed);
  const blocked = messageOf(await tlsClientHello("blocked.test"));
  other.send(initialPacket(cryptoFrame(0, blocked)), "127.0.0.1", origin.port);
  await core.shows(/blocked\.test[^\n]*REJECT|REJECT[^\n]*blocked\.test|\[UDP\][^\n]*rejected/i);
});

test("an unknown fake address: refused, but rescued by a name", async () => {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using origin = await openTcpOrigin(echo);
  const dns =
    "dns: { enable: true, ipv6: false, enhanced-mode: fake-ip, nameserver: [rcode://refused], default-nameserver: [127.0.0.1] }";
  await using _core = await startCore(configText(mixed, controller, origin.port, dns));
  const { client } = await socksConnect(mixed, "198.18.7.7", origin.port);
  using _client = client;
  client.send(request("rescued.test"));
  assert.equal(await client.until("\r\n\r\n"), request("rescued.test"));
  const [row] = await rows(controller);
  assert.deepEqual(
    [row?.metadata.host, row?.metadata.sniffHost, row?.metadata.dnsMode, row?.metadata.destinationIP],
    ["rescued.test", "rescued.test", "hosts", "127.0.0.1"],
  );
  const lost = await socksConnect(mixed, "198.18.7.7", 9);
  using _lost = lost.client;
  assert.notEqual(lost.status, 0);
});

const CERTIFICATE = ["certificate", "private-key"].map(
  (key) => `${key}: ${JSON.stringify(key === "certificate" ? quicCertificate.cert : quicCertificate.key)}`,
);

const skip = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";

test("a client of TUIC that goes on by another node of it", { skip }, async () => {
  const [port, controller] = (await freePorts(2)) as [number, number];
  await using far = await openTuicServer();
  const place = { uuid: TUIC_UUID, password: TUIC_PASSWORD, "skip-cert-verify": true };
  const node = { name: "far", type: "tuic", server: "127.0.0.1", port: far.port, ...place };
  const listener = `name: near, type: tuic, listen: 127.0.0.1, port: ${port}, users: { ${TUIC_UUID}: ${TUIC_PASSWORD} }`;
  await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
sniffer: { enable: true, sniff: { TLS: { ports: [443] } } }
listeners: [{ ${[listener, ...CERTIFICATE].join(", ")} }]
proxies: [${JSON.stringify(node)}]
rules: ["DOMAIN,open.test,far", "MATCH,REJECT"]
`);
  const dialer = openDirectDialer({ resolver: literalsOnly });
  await using near = await openTestOutbound(tuic, { server: "127.0.0.1", port, ...place }, dialer);
  const hello = await tlsClientHello("open.test");
  for (let count = 0; count < 3; count++) {
    const context = { signal: AbortSignal.timeout(10_000), metadata: null };
    const stream = await near.connect(toDestination("192.0.2.1", 443), context);
    stream.end(hello);
    const pieces: Buffer[] = await Array.fromAsync(stream);
    assert.deepEqual(Buffer.concat(pieces), hello);
  }
  assert.doesNotMatch(core.output(), /a fault of weir/);
});
