/** How upstreams are reached: directly, through a proxy, by the rules; and the system's servers. */
import assert from "node:assert/strict";
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import type { Dialer } from "#core/outbound.ts";
import { destinationText } from "#core/session.ts";
import { decodeMessage, encodeMessage } from "#dns/message.ts";
import { openSystemDns } from "#dns/system-dns.ts";
import type { Exit } from "#dns/upstream/upstream.ts";
import { makeCertificate } from "../support/certificate.ts";
import { address, always, ENV, HOST, openScripted, openTestDns, reply, server } from "./dns-kit.ts";

const signal = () => AbortSignal.timeout(6000);

/** Writes down what it was asked for and goes to the given port of this machine instead. */
function leadTo(port: number, seen: string[]): Dialer {
  const direct = ENV.exitFor({ exit: null, followRules: false }).dialer;
  const place = { host: null, ip: HOST, port };
  return {
    connect(destination, context) {
      seen.push(`tcp ${destinationText(destination)}`);
      return direct.connect(place, context);
    },
    async associate(destination, context) {
      seen.push(`udp ${destinationText(destination)}`);
      const flow = await direct.associate(place, context);
      return {
        closed: flow.closed,
        send: ({ payload }) => flow.send({ payload, destination: place }),
        receive: (on) => flow.receive(({ payload }) => on({ payload, destination })),
        [Symbol.asyncDispose]: () => flow[Symbol.asyncDispose](),
      };
    },
  };
}

test("a proxy gets the name of a stream server; everybody else, and UDP, get an address", async () => {
  await using bootstrap = await openScripted(always("192.0.2.53"));
  await using peer = await openScripted(always("192.0.2.1"));
  const seen: string[] = [];
  const dialer = leadTo(peer.port, seen);
  const exitFor = ({ exit, followRules }: { exit: string | null; followRules: boolean }): Exit =>
    followRules
      ? { dialer, kind: "rules" }
      : exit === "Proxy"
        ? { dialer, kind: "proxy" }
        : exit === "eth9"
          ? { dialer, kind: "direct" }
          : ENV.exitFor({ exit, followRules });
  for (const [text, wanted] of [
    ["tcp://dns.example.net#Proxy", "tcp dns.example.net:53"],
    ["udp://dns.example.net#Proxy", "udp 192.0.2.53:53"],
    ["tcp://dns.example.net#RULES", "tcp 192.0.2.53:53"],
    ["tcp://dns.example.net#eth9", "tcp 192.0.2.53:53"],
    ["udp://192.0.2.9#eth9", "udp 192.0.2.9:53"],
  ] as const) {
    await using dns = await openTestDns(
      { nameserver: [server(text)], defaultNameserver: [server(`${HOST}:${bootstrap.port}`)], ipv6: false },
      { exitFor },
    );
    const [first] = await dns.resolver.lookup("example.org", { signal: signal() });
    assert.deepEqual([first?.ip, seen.splice(0)], ["192.0.2.1", [wanted]], text);
  }
});

test("equal entries of all lists share one connection", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  const seen: string[] = [];
  const dialer = leadTo(peer.port, seen);
  const shared = [server("tcp://192.0.2.53")];
  await using dns = await openTestDns(
    {
      nameserver: shared,
      proxyServerNameserver: shared,
      directNameserver: [server("tcp://192.0.2.53:53")],
      ipv6: false,
    },
    { exitFor: () => ({ dialer, kind: "direct" }) },
  );
  for (const resolver of [dns.resolver, dns.proxyResolver, dns.directResolver])
    await resolver.lookup("example.org", { signal: signal() });
  assert.deepEqual(seen, ["tcp 192.0.2.53:53"]);
  assert.equal(peer.asked.length, 3);
});

test("a dial that fails is one error, and the look-up says why", async () => {
  const dialer: Dialer = {
    connect: () => Promise.reject(new Error("no route")),
    associate: () => Promise.reject(new Error("UDP not supported")),
  };
  for (const [text, why] of [
    ["tcp://192.0.2.1", /no route/],
    ["192.0.2.1", /UDP not supported/],
  ] as const) {
    await using dns = await openTestDns(
      { nameserver: [server(text)], ipv6: false },
      { exitFor: () => ({ dialer, kind: "proxy" }) },
    );
    await assert.rejects(dns.resolver.lookup("example.org", { signal: signal() }), why);
  }
});

test("with the section off, the system's servers and both hosts tables answer", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  const folder = await mkdtemp(join(tmpdir(), "dns-off-"));
  const [resolvConf, hostsFile] = [join(folder, "resolv.conf"), join(folder, "hosts")];
  await writeFile(resolvConf, "nameserver 192.0.2.53\n");
  await writeFile(hostsFile, "10.0.0.1 file.org\n");
  const seen: string[] = [];
  try {
    const hosts = [
      { pattern: "table.org", value: { kind: "addresses" as const, addresses: ["10.0.0.2" as never] } },
    ];
    const exitFor = (): Exit => ({ dialer: leadTo(peer.port, seen), kind: "direct" });
    await using dns = await openSystemDns({ ...ENV, hosts, exitFor, resolvConf, hostsFile, ipv6: false });
    const lookup = async (name: string) => (await dns.resolver.lookup(name, { signal: signal() }))[0]?.ip;
    assert.deepEqual(
      [await lookup("example.org"), await lookup("file.org"), await lookup("table.org")],
      ["192.0.2.1", "10.0.0.1", "10.0.0.2"],
    );
    assert.deepEqual(seen, ["udp 192.0.2.53:53"]);
    assert.equal(dns.prepare({ host: "table.org", ip: null, port: 1 }).dnsMode, "hosts");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an engine that is closed ends every question", async () => {
  await using peer = await openScripted(() => null);
  const dns = await openTestDns({ nameserver: [server(`tcp://${HOST}:${peer.port}`)], ipv6: false });
  const lookup = dns.resolver.lookup("example.org", { signal: signal() });
  const refused = assert.rejects(lookup, { reason: "resolve" });
  await dns[Symbol.asyncDispose]();
  await refused;
});

const answerQuestion = (request: IncomingMessage, response: ServerResponse) => {
  const asked = new URL(request.url ?? "", "http://x").searchParams.get("dns") ?? "";
  const query = decodeMessage(Buffer.from(asked, "base64url"));
  response.end(encodeMessage(reply(query, [address(query.questions[0]?.name ?? "", "192.0.2.1")])));
};

for (const [text, open] of [
  ["http://192.0.2.80/q", () => createHttp(answerQuestion)],
  ["https://192.0.2.80/q#skip-cert-verify=true", () => createHttps(makeCertificate(), answerQuestion)],
] as const)
  test(`${text} in HTTP/1.1 by a proxy whose streams are no sockets: two connections at most`, async () => {
    let connections = 0;
    const peer = open();
    const dialer: Dialer = {
      async connect() {
        connections++;
        const [near, far] = duplexPair();
        peer.emit("connection", far);
        return near;
      },
      associate: () => Promise.reject(new Error("streams only")),
    };
    await using dns = await openTestDns(
      { nameserver: [server(text)], ipv6: false },
      { exitFor: () => ({ dialer, kind: "proxy" }) },
    );
    for (const name of ["a.org", "b.org", "c.org", "d.org", "e.org"]) {
      const [found] = await dns.resolver.lookup(name, { signal: signal() });
      assert.equal(found?.ip, "192.0.2.1");
    }
    assert.ok(connections <= 2, `${connections} connections`);
  });
