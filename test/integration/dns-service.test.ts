import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { dnsControl } from "#app/control/dns.ts";
import type { DomainCondition, HostEntry } from "#core/dns-options.ts";
import type { Ip } from "#core/session.ts";
import type { FakeIpBatch } from "#dns/journaled-pool.ts";
import { frameOf, FrameReader } from "#dns/frames.ts";
import { decodeMessage } from "#dns/message.ts";
import type { Observation } from "#dns/observe.ts";
import { encodeQuestion } from "#dns/query.ts";
import { atOnce } from "#lib/steps.ts";
import type { DnsStack } from "#runtime/names.ts";
import { apiApp } from "../support/api-app.ts";
import {
  address,
  always,
  dig,
  HOST,
  listen,
  missing,
  openScripted,
  openTestDns,
  reply,
  server,
} from "./dns-kit.ts";

const needsDig = { skip: missing("dig") };
const ask = (name: string, type = 1) => encodeQuestion(name, type);
const byUdp = { network: "udp" } as const;
const domain = (pattern: string): DomainCondition => ({ kind: "domain", pattern });
const alias = (pattern: string, name: string): HostEntry => ({ pattern, value: { kind: "alias", name } });
const pinned = (pattern: string, ...addresses: string[]): HostEntry => ({
  pattern,
  value: { kind: "addresses", addresses: addresses as Ip[] },
});
const to = (ip: string) => ({ host: null, ip: ip as Ip, port: 443 });

test("dns.md §16.1 fake-IP as a client sees it", needsDig, async () => {
  await using peer = await openScripted((query) =>
    reply(query, [
      { name: query.questions[0]?.name ?? "", type: 16, class: 1, ttl: 60, data: Buffer.from("\x02ok") },
    ]),
  );
  await using dns = await openTestDns({
    enhancedMode: "fake-ip",
    nameserver: [server(`${HOST}:${peer.port}`)],
  });
  await using front = await listen(dns.handle);
  const short = (...words: string[]) => dig(front.port, "+short", ...words);
  assert.deepEqual(await short("a.org"), ["198.18.0.4"]);
  assert.deepEqual(await short("b.org"), ["198.18.0.5"]);
  assert.deepEqual(await short("A.org"), ["198.18.0.4"]);
  assert.deepEqual(await short("a.org", "AAAA"), []);
  assert.deepEqual(await short("a.org", "HTTPS"), []);
  assert.equal(peer.asked.length, 0);
  assert.deepEqual(await short("a.org", "TXT"), ['"ok"']);
  const whole = (await dig(front.port, "a.org")).join("\n");
  assert.match(whole, /status: NOERROR/);
  assert.match(whole, /flags: qr aa rd ra;/);
  assert.match(whole, /a\.org\.\s+1\s+IN\s+A\s+198\.18\.0\.4/);

  assert.deepEqual(dns.prepare(to("198.18.0.5")), {
    destination: { host: "b.org", ip: null, port: 443 },
    dial: { host: "b.org", ip: null, port: 443 },
    dnsMode: "fake-ip",
    refusal: null,
  });
  assert.equal(dns.prepare(to("198.18.9.9")).refusal, "fake DNS record 198.18.9.9 missing");
  assert.equal(dns.prepare(to("198.18.0.1")).refusal, null);
  dns.flushFakeIp();
  assert.notEqual(dns.prepare(to("198.18.0.5")).refusal, null);
  assert.deepEqual(await short("z.org"), ["198.18.0.4"]);
});

test("dns.md §16.2 stored pairs survive a restart, another range starts over", async () => {
  const nameserver = [server("rcode://refused")];
  const batches: FakeIpBatch[] = [];
  const options = { enhancedMode: "fake-ip" as const, nameserver };
  const first = await openTestDns(options, { persist: (batch) => void batches.push(batch) });
  for (const name of ["a.org", "b.org"]) await first.handle(ask(name), byUdp);
  await first[Symbol.asyncDispose]();
  assert.deepEqual(
    batches.flatMap(({ pairs }) => pairs),
    [
      ["a.org", "198.18.0.4"],
      ["b.org", "198.18.0.5"],
    ],
  );
  assert.deepEqual([batches.at(-1)?.offset, batches.at(-1)?.range], [5, "198.18.0.0/16"]);
  const pairs = [["b.org", "198.18.0.5" as Ip]] as const;
  const addressOf = async (range: string) => {
    await using dns = await openTestDns({ ...options, fakeIpRange: { ip: range as Ip, bits: 16 } });
    assert.ok(dns.fakeIp);
    atOnce(dns.fakeIp.restore({ v4: { range: "198.18.0.0/16", offset: 5, cycle: false, pairs }, v6: null }));
    const answer = decodeMessage(await dns.handle(ask("b.org"), byUdp));
    return [...(answer.answers[0]?.data ?? [])].join(".");
  };
  assert.equal(await addressOf("198.18.0.1"), "198.18.0.5");
  assert.equal(await addressOf("10.99.0.1"), "10.99.0.4");
});

test("dns.md §16.3 blacklist, whitelist and rules are complementary", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  const base = { enhancedMode: "fake-ip" as const, nameserver: [server(`${HOST}:${peer.port}`)] };
  const fakeIpFilter = [domain("+.real.org"), { kind: "geosite" as const, category: "cn" }];
  const geosite = () => ({
    size: 1,
    reads: ["host"] as const,
    match: ({ host }: { host?: string | null }) => host === "set.net",
  });
  const condition = (_: string, payload: string) => ({
    reads: ["host"] as const,
    match: ({ host }: { host?: string | null }) => host?.endsWith(payload) ?? false,
  });
  const sets = { geosite, ruleSet: () => null, condition };
  const names = ["real.org", "www.real.org", "set.net", "other.net"];
  const fakedBy = async (options: object) => {
    await using dns = await openTestDns({ ...base, ...options }, { sets });
    const explained = names.map((name) => dns.explain(name).faked);
    for (const [index, name] of names.entries()) {
      const { answers } = decodeMessage(await dns.handle(ask(name), byUdp));
      assert.equal(answers[0]?.data[0] === 198, explained[index]);
    }
    return explained;
  };
  assert.deepEqual(await fakedBy({ fakeIpFilter }), [false, false, false, true]);
  assert.deepEqual(await fakedBy({ fakeIpFilter, fakeIpFilterMode: "whitelist" }), [true, true, true, false]);
  const rules = [
    { type: "DOMAIN-SUFFIX", payload: "www.real.org", fake: true },
    { type: "DOMAIN-SUFFIX", payload: "real.org", fake: false },
    { type: "GEOSITE", payload: "cn", fake: false },
  ];
  assert.deepEqual(await fakedBy({ fakeIpRules: rules, fakeIpFilterMode: "rule" }), [
    false,
    true,
    false,
    true,
  ]);
});

test("dns.md §16.4 all servers refuse: SERVFAIL with the question", needsDig, async () => {
  await using peer = await openScripted((query) => reply(query, [], 5));
  await using dns = await openTestDns({ nameserver: [server(`${HOST}:${peer.port}`)] });
  await using front = await listen(dns.handle);
  const whole = (await dig(front.port, "example.org")).join("\n");
  assert.match(whole, /status: SERVFAIL/);
  assert.match(whole, /;example\.org\.\s+IN\s+A/);
});

test("dns.md §16.8 hosts: a name of one family has an empty answer for the other, and nothing is forwarded", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  const hosts = [
    pinned("v4.org", "10.0.0.1", "10.0.0.2"),
    pinned("*.wild.org", "10.0.0.3"),
    pinned("+.wild.org", "10.0.0.4"),
    alias("short.org", "v4.org"),
    alias("away.org", "example.org"),
  ];
  await using dns = await openTestDns({ nameserver: [server(`${HOST}:${peer.port}`)] }, { hosts });
  const answersOf = async (name: string, type = 1) => {
    const { answers } = decodeMessage(await dns.handle(ask(name, type), byUdp));
    return answers.map(({ name: owner, type: kind, ttl, data }) =>
      kind === 1 ? `${owner} ${ttl} ${[...data].join(".")}` : `${owner} ${ttl} type ${kind}`,
    );
  };
  assert.deepEqual(await answersOf("v4.org"), ["v4.org 10 10.0.0.1", "v4.org 10 10.0.0.2"]);
  assert.deepEqual(await answersOf("v4.org", 28), []);
  assert.deepEqual(await answersOf("a.wild.org"), ["a.wild.org 10 10.0.0.3"]);
  assert.deepEqual(await answersOf("a.b.wild.org"), ["a.b.wild.org 10 10.0.0.4"]);
  assert.deepEqual(await answersOf("localhost"), ["localhost 10 127.0.0.1"]);
  assert.deepEqual(await answersOf("short.org"), ["short.org 10 10.0.0.1", "short.org 10 10.0.0.2"]);
  assert.equal(peer.asked.length, 0);
  assert.deepEqual(await answersOf("away.org"), ["away.org 10 type 5", "example.org 300 192.0.2.1"]);
  assert.deepEqual(await answersOf("away.org", 5), ["away.org 10 type 5"]);
  assert.equal(peer.asked.length, 1);
  const mode = (name: string) => dns.prepare({ host: name, ip: null, port: 80 });
  assert.deepEqual(mode("away.org").destination, { host: "example.org", ip: null, port: 80 });
  assert.equal(mode("v4.org").dnsMode, "hosts");
  assert.match(mode("v4.org").destination.ip ?? "", /^10\.0\.0\.[12]$/);
});

test("dns.md §5 hosts: an alias is followed for a question with EDNS, too, into the fake addresses", async () => {
  const hosts = [alias("away.org", "example.org")];
  const settings = { enhancedMode: "fake-ip", nameserver: [server("192.0.2.1:53")] } as const;
  await using dns = await openTestDns(settings, { hosts });
  const opt = Buffer.of(0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0);
  const asked = Buffer.concat([ask("away.org"), opt]);
  asked.writeUInt16BE(1, 10);
  asked.write("AwaY", 13);
  const { flags, questions, answers } = decodeMessage(await dns.handle(asked, byUdp));
  assert.equal(flags & 0xf, 0);
  assert.deepEqual(questions, [{ name: "AwaY.org", type: 1, class: 1 }]);
  assert.deepEqual(
    answers.map(({ name, type }) => `${name} ${type}`),
    ["AwaY.org 5", "example.org 1"],
  );
});

test("hosts: aliases that lead back are refused at load", async () => {
  const hosts = [alias("a.org", "b.org"), alias("b.org", "a.org")];
  await assert.rejects(openTestDns({ nameserver: [server("192.0.2.1")] }, { hosts }), /leads back to itself/);
});

test("redir-host: the name of an address is the last one that resolved to it; private addresses are kept, too", async () => {
  const ips: Record<string, string> = { "a.org": "192.0.2.1", "b.org": "203.0.113.1", "lan.org": "10.0.0.1" };
  await using peer = await openScripted((query) => {
    const name = query.questions[0]?.name ?? "";
    return reply(query, [address(name, ips[name] ?? "203.0.113.1")]);
  });
  await using dns = await openTestDns({ nameserver: [server(`${HOST}:${peer.port}`)] });
  for (const name of ["b.org", "c.org", "lan.org"]) await dns.handle(ask(name), byUdp);
  assert.deepEqual(dns.prepare(to("203.0.113.1")), {
    destination: { host: "c.org", ip: "203.0.113.1", port: 443 },
    dial: { host: "c.org", ip: "203.0.113.1", port: 443 },
    dnsMode: "redir-host",
    refusal: null,
  });
  await dns.handle(ask("b.org"), byUdp); // from the cache
  assert.equal(dns.prepare(to("203.0.113.1")).destination.host, "b.org");
  assert.equal(dns.prepare(to("10.0.0.1")).destination.host, "lan.org");
});

test("dns.md §16.9 a client without OPT gets TC at 512 bytes, then everything by TCP", needsDig, async () => {
  const many = Array.from({ length: 60 }, (_, last) => `192.0.2.${last + 1}`);
  await using peer = await openScripted((query) =>
    reply(
      query,
      many.map((ip) => address(query.questions[0]?.name ?? "", ip)),
    ),
  );
  await using dns = await openTestDns({ nameserver: [server(`tcp://${HOST}:${peer.port}`)] });
  await using front = await listen(dns.handle);
  const cut = (await dig(front.port, "+noedns", "+ignore", "example.org")).join("\n");
  assert.match(cut, /flags: qr aa tc rd ra;/);
  assert.ok(Number(/rcvd: (\d+)/.exec(cut)?.[1]) <= 512);
  assert.equal((await dig(front.port, "+noedns", "+short", "example.org")).length, 60);
  const large = (await dig(front.port, "+bufsize=1232", "+ignore", "+dnssec", "example.org")).join("\n");
  assert.match(large, /flags: qr aa rd ra;/);
  assert.match(large, /EDNS: version: 0, flags: do; udp: 1232/);
  const hijacked = await dns.handle(ask("example.org"), { network: "udp", maxBytes: 100 });
  assert.ok(hijacked.length <= 100);
});

test("dns.md §16.11 with IPv6 off AAAA is answered empty", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  await using dns = await openTestDns({ nameserver: [server(`${HOST}:${peer.port}`)], ipv6: false });
  const answer = decodeMessage(await dns.handle(ask("example.org", 28), byUdp));
  assert.deepEqual([answer.flags & 15, answer.answers.length, peer.asked.length], [0, 0, 0]);
});

test("dns.md §16.13 the answer waits for the observer, but not for long, and fakes are not shown to it", async () => {
  await using peer = await openScripted((query) => {
    const name = query.questions[0]?.name ?? "";
    const data = Buffer.from("\x03end\x03org\x00", "latin1");
    return reply(query, [{ name, type: 5, class: 1, ttl: 60, data }, address("end.org", "203.0.113.1", 90)]);
  });
  const seen: Observation[] = [];
  let pauseMs = 40;
  let done = false;
  const observer = async (observation: Observation) => {
    seen.push(observation);
    await delay(pauseMs, undefined, { ref: false });
    done = true;
  };
  await using dns = await openTestDns(
    {
      nameserver: [server(`${HOST}:${peer.port}`)],
      enhancedMode: "fake-ip",
      fakeIpFilter: [domain("real.org")],
    },
    { observer: () => observer },
  );
  await dns.handle(ask("Real.org"), byUdp);
  assert.equal(done, true);
  assert.deepEqual(seen, [{ host: "real.org", addresses: [{ ip: "203.0.113.1", ttlMs: 60_000 }] }]);
  await dns.handle(ask("faked.org"), byUdp);
  assert.equal(seen.length, 1);
  pauseMs = 60_000;
  await dns.handle(ask("real.org"), byUdp);
  assert.equal(seen.length, 2);
});

test("dns.md §16.14 DoH: GET and POST round trip with the time that they may be kept, wrong content type 500, PUT 405", async () => {
  await using peer = await openScripted(always("192.0.2.1", 77));
  await using dns = await openTestDns({ nameserver: [server(`${HOST}:${peer.port}`)] });
  const { app, control } = await apiApp({ dohPath: "/dns-query" });
  const { exchange } = dnsControl(() => ({ dns }) as unknown as DnsStack);
  Object.assign(control.dns, { exchange });
  const query = ask("example.org");
  const type = "application/dns-message";
  const url = "/dns-query";
  const post = {
    method: "POST",
    url,
    headers: { "content-type": type },
    payload: Buffer.from(query),
  } as const;
  const get = { method: "GET", url: `${url}?dns=${Buffer.from(query).toString("base64url")}` } as const;
  for (const request of [get, post]) {
    const { statusCode, headers, rawPayload } = await app.inject(request);
    assert.deepEqual(
      [statusCode, headers["content-type"], headers["cache-control"]],
      [200, type, "max-age=77"],
    );
    assert.equal(decodeMessage(rawPayload).id, decodeMessage(query).id);
  }
  const statusOf = async (change: object) => (await app.inject({ ...post, ...change })).statusCode;
  assert.equal(await statusOf({ headers: { "content-type": "text/plain" } }), 500);
  assert.equal(await statusOf({ method: "PUT" }), 405);
  assert.equal(await statusOf({ payload: Buffer.from("nonsense") }), 500);
});

test("the listener: nonsense is dropped by UDP and ends a TCP connection, no question is SERVFAIL", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  await using dns = await openTestDns({ nameserver: [server(`${HOST}:${peer.port}`)] });
  await using front = await listen(dns.handle);
  const udp = createSocket("udp4");
  const messages: Buffer[] = [];
  udp.on("message", (message) => void messages.push(message));
  udp.bind(0, HOST);
  await once(udp, "listening");
  const send = (bytes: Uint8Array) => udp.send(bytes, front.port, HOST);
  send(Buffer.from("short"));
  send(Buffer.alloc(300, 0xff));
  send(Buffer.from("123401000000000000000000", "hex"));
  send(ask("example.org"));
  while (messages.length < 2) await once(udp, "message");
  udp.close();
  const codes = messages.map((message) => (message[3] as number) & 15).sort((a, b) => a - b);
  assert.deepEqual(codes, [0, 2]);

  const tcp = connect(front.port, HOST);
  const answers: Buffer[] = [];
  const frames = new FrameReader((frame) => void answers.push(frame));
  tcp.on("data", (chunk: Buffer) => frames.push(chunk));
  const asked = ["a.org", "b.org", "c.org"].map((name) => frameOf(ask(name)));
  const all = Buffer.concat(asked);
  tcp.write(all.subarray(0, 5));
  await delay(5);
  tcp.write(all.subarray(5));
  while (answers.length < 3) await once(tcp, "data");
  tcp.write(frameOf(Buffer.from("nonsense")));
  await once(tcp, "close");
  assert.equal(answers.length, 3);
});
