import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { NameserverOptions } from "#core/dns-options.ts";
import type { RuleData } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { decodeMessage, encodeMessage } from "#dns/message.ts";
import { address, always, HOST, openScripted, openTestDns, reply, type Script, server } from "./dns-kit.ts";
import { until } from "../support/until.ts";

const udp = (peer: { readonly port: number }): NameserverOptions => server(`udp://${HOST}:${peer.port}`);
const signal = () => AbortSignal.timeout(6000);
const after =
  (ms: number, script: Script): Script =>
  async (query, network) => {
    await delay(ms);
    return script(query, network);
  };
const refuse =
  (rcode: number): Script =>
  (query) =>
    reply(query, [], rcode);
function bareHeader(id: number, flags: number): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(flags, 2);
  return header;
}
const ipsOf = (answers: readonly { readonly ip: Ip }[]) => answers.map(({ ip }) => ip);

test("dns.md §16.4 the second wins where the first says SERVFAIL at once", async () => {
  await using failing = await openScripted(refuse(2));
  await using slow = await openScripted(after(50, always("192.0.2.2")));
  await using dns = await openTestDns({ nameserver: [udp(failing), udp(slow)] });
  const found = await dns.resolver.lookup("example.org", { family: 4, signal: signal() });
  assert.deepEqual(ipsOf(found), ["192.0.2.2"]);
});

test("dns.md §16.4 both refuse: the look-up fails with the first failure", async () => {
  await using first = await openScripted(refuse(5));
  await using second = await openScripted(refuse(2));
  await using dns = await openTestDns({ nameserver: [udp(first), udp(second)] });
  const lookup = dns.resolver.lookup("example.org", { family: 4, signal: signal() });
  await assert.rejects(lookup, /all DNS requests failed: .*REFUSED/);
});

const countryOf = (ip: Ip) => (ip.startsWith("192.0.2.") ? "CN" : ip.startsWith("198.51.100.") ? "US" : null);

test("dns.md §16.5 one polluted address of two: the fallback answer is used", async () => {
  const both: Script = (query) => {
    const name = query.questions[0]?.name ?? "";
    if (name === "private.org") return reply(query, [address(name, "10.1.2.3")]);
    if (name === "clean.org") return reply(query, [address(name, "192.0.2.1")]);
    if (name === "unknown.org") return reply(query, [address(name, "203.0.113.1")]);
    return reply(query, [address(name, "192.0.2.1"), address(name, "198.51.100.1")]);
  };
  await using main = await openScripted(both);
  await using second = await openScripted(always("192.0.2.99"));
  for (const fallbackLazyQuery of [false, true]) {
    await using dns = await openTestDns(
      { nameserver: [udp(main)], fallback: [udp(second)], fallbackLazyQuery },
      { countryOf },
    );
    const lookup = async (name: string) =>
      ipsOf(await dns.resolver.lookup(name, { family: 4, signal: signal() }));
    assert.deepEqual(await lookup("mixed.org"), ["192.0.2.99"]);
    assert.deepEqual(await lookup("private.org"), ["10.1.2.3"]);
    assert.deepEqual(await lookup("clean.org"), ["192.0.2.1"]);
    assert.deepEqual(await lookup("unknown.org"), ["192.0.2.99"]);
  }
});

test("fallback-filter: networks and names", async () => {
  await using main = await openScripted(always("192.0.2.1"));
  await using second = await openScripted(always("192.0.2.99"));
  const fallbackFilter = {
    geoip: false,
    geoipCode: "CN",
    ipcidr: [{ ip: "192.0.2.0" as Ip, bits: 28 }],
    domain: ["+.example.org"],
    geosite: [],
  };
  await using dns = await openTestDns({ nameserver: [udp(main)], fallback: [udp(second)], fallbackFilter });
  const lookup = async (name: string) =>
    ipsOf(await dns.resolver.lookup(name, { family: 4, signal: signal() }));
  assert.deepEqual(await lookup("polluted.net"), ["192.0.2.99"]);
  const before = main.asked.length;
  assert.deepEqual(await lookup("www.example.org"), ["192.0.2.99"]);
  assert.equal(main.asked.length, before);
});

test("dns.md §16.6 a hundred questions at once are one query", async () => {
  await using peer = await openScripted(after(30, always("192.0.2.1")));
  await using dns = await openTestDns({ nameserver: [udp(peer)] });
  const all = Array.from({ length: 100 }, () =>
    dns.resolver.lookup("example.org", { family: 4, signal: signal() }),
  );
  assert.equal((await Promise.all(all)).length, 100);
  assert.equal(peer.asked.length, 1);
});

test("dns.md §16.7 an expired answer is given at once and one refresh goes out", async () => {
  await using peer = await openScripted(always("192.0.2.1", 300));
  let now = 1e12;
  await using dns = await openTestDns({ nameserver: [udp(peer)] }, { nowMs: () => now });
  const ttl = async () =>
    (await dns.resolver.lookup("example.org", { family: 4, signal: signal() }))[0]?.ttlMs;
  assert.equal(await ttl(), 300_000);
  now += 100_000;
  assert.equal(await ttl(), 200_000);
  assert.equal(peer.asked.length, 1);
  now += 300_000;
  assert.deepEqual(await Promise.all([ttl(), ttl(), ttl()]), [1000, 1000, 1000]);
  await until("the new answer is there", async () => (await ttl()) === 300_000);
  assert.equal(peer.asked.length, 2);
});

test("a failure is remembered for five seconds and never hides an answer that is only old", async () => {
  let failing = true;
  await using peer = await openScripted((query, network) =>
    failing ? reply(query, [], 2) : always("192.0.2.1", 300)(query, network),
  );
  let now = 1e12;
  await using dns = await openTestDns({ nameserver: [udp(peer)] }, { nowMs: () => now });
  const ips = async () => ipsOf(await dns.resolver.lookup("example.org", { family: 4, signal: signal() }));
  await assert.rejects(ips(), /SERVFAIL/);
  await assert.rejects(ips(), /couldn't find ip/);
  assert.equal(peer.asked.length, 1);
  failing = false;
  now += 5001;
  assert.deepEqual(await ips(), ["192.0.2.1"]);
  failing = true;
  now += 400_000;
  assert.deepEqual(await ips(), ["192.0.2.1"]);
  await until("the refresh is asked for", () => peer.asked.length >= 3);
  await delay(20); // its failure has come by then on most machines; the outcome must not depend on it
  assert.deepEqual(await ips(), ["192.0.2.1"]);
});

test("dns.md §16.9 a cut UDP answer is fetched by TCP", async () => {
  const script: Script = (query, network) => {
    const name = query.questions[0]?.name ?? "";
    const many = Array.from({ length: 60 }, (_, last) => address(name, `192.0.2.${last + 1}`));
    return network === "udp" ? { ...reply(query, many.slice(0, 5)), flags: 0x8380 } : reply(query, many);
  };
  await using peer = await openScripted(script);
  await using dns = await openTestDns({ nameserver: [udp(peer)] });
  const found = await dns.resolver.lookup("example.org", { family: 4, signal: signal() });
  assert.equal(found.length, 60);
  assert.equal(peer.asked.length, 2);
});

test("dns.md §16.11 with IPv6 off no AAAA leaves", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  await using dns = await openTestDns({ nameserver: [udp(peer)], ipv6: false });
  await dns.resolver.lookup("example.org", { signal: signal() });
  await assert.rejects(dns.resolver.lookup("example.org", { family: 6, signal: signal() }), /ipv6 disabled/);
  assert.deepEqual(
    peer.asked.map(({ questions }) => questions[0]?.type),
    [1],
  );
});

test("both families: A does not wait long for AAAA, AAAA is waited for where A fails", async () => {
  const slowV6: Script = async (query) => {
    const question = query.questions[0];
    if (question?.type === 28) await delay(question.name.startsWith("stuck") ? 2000 : 20);
    if (question?.type === 28) return reply(query, [address(question.name, "2001:db8::1")]);
    return question?.name === "v6only.org"
      ? reply(query, [], 2)
      : reply(query, [address("both.org", "192.0.2.1")]);
  };
  await using peer = await openScripted(slowV6);
  await using dns = await openTestDns({ nameserver: [udp(peer)] });
  const lookup = async (name: string) => ipsOf(await dns.resolver.lookup(name, { signal: signal() }));
  assert.deepEqual(await lookup("both.org"), ["192.0.2.1", "2001:db8::1"]);
  assert.deepEqual(await lookup("v6only.org"), ["2001:db8::1"]);
  assert.deepEqual(await lookup("stuck.org"), ["192.0.2.1"]);
});

test("policies: file order, the most specific pattern inside a run of plain names, sets end the run", async () => {
  const peers = await Promise.all([1, 2, 3, 4].map((last) => openScripted(always(`192.0.2.${last}`))));
  await using _ = {
    [Symbol.asyncDispose]: async () => void (await Promise.all(peers.map((p) => p[Symbol.asyncDispose]()))),
  };
  const [main, wide, exact, listed] = peers.map(udp) as [
    NameserverOptions,
    NameserverOptions,
    NameserverOptions,
    NameserverOptions,
  ];
  const geosite = (category: string): RuleData | null =>
    category === "cn"
      ? { size: 1, reads: ["host"], match: ({ host }) => host === "late.example.org" || host === "set.net" }
      : null;
  const domain = (pattern: string) => ({ kind: "domain" as const, pattern });
  await using dns = await openTestDns(
    {
      nameserver: [main],
      nameserverPolicy: [
        { conditions: [domain("+.example.org")], servers: [wide] },
        { conditions: [domain("www.example.org")], servers: [exact] },
        { conditions: [{ kind: "geosite", category: "cn" }], servers: [listed] },
      ],
    },
    { sets: { geosite, ruleSet: () => null, condition: () => ({ reads: [], match: () => false }) } },
  );
  const lookup = async (name: string) =>
    ipsOf(await dns.resolver.lookup(name, { family: 4, signal: signal() }));
  assert.deepEqual(await lookup("www.example.org"), ["192.0.2.3"]);
  assert.deepEqual(await lookup("late.example.org"), ["192.0.2.2"]);
  assert.deepEqual(await lookup("set.net"), ["192.0.2.4"]);
  assert.deepEqual(await lookup("other.net"), ["192.0.2.1"]);
  assert.equal(dns.explain("www.example.org").by, "www.example.org");
  assert.equal(dns.explain("set.net").by, "geosite:cn");
  assert.deepEqual(dns.explain("other.net").servers, [main.text]);
});

test("names of DNS servers are asked of the default servers, also when the core asks for them itself", async () => {
  await using bootstrap = await openScripted(always(HOST));
  await using peer = await openScripted(always("192.0.2.1"));
  await using dns = await openTestDns({
    nameserver: [server(`tcp://dns.example.net:${peer.port}`)],
    defaultNameserver: [udp(bootstrap)],
    ipv6: false,
  });
  assert.deepEqual(ipsOf(await dns.resolver.lookup("example.org", { signal: signal() })), ["192.0.2.1"]);
  assert.deepEqual(ipsOf(await dns.directResolver.lookup("dns.example.net", { signal: signal() })), [HOST]);
  assert.equal(peer.asked.length, 1);
});

test("proxy and direct names have servers of their own; without them they share the main cache", async () => {
  await using main = await openScripted(always("192.0.2.1"));
  await using other = await openScripted(always("192.0.2.2"));
  await using dns = await openTestDns({
    nameserver: [udp(main)],
    proxyServerNameserver: [udp(other)],
    ipv6: false,
  });
  const options = { signal: signal() };
  assert.deepEqual(ipsOf(await dns.proxyResolver.lookup("node.net", options)), ["192.0.2.2"]);
  assert.deepEqual(ipsOf(await dns.directResolver.lookup("node.net", options)), ["192.0.2.1"]);
  assert.deepEqual(ipsOf(await dns.resolver.lookup("node.net", options)), ["192.0.2.1"]);
  assert.equal(main.asked.length, 1);
});

test("hostile answers cost one error at most and no more than the deadline of one question", async () => {
  const loops: Script = (query) => {
    const head = Buffer.alloc(12);
    head.writeUInt16BE(query.id, 0);
    head.writeUInt16BE(0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(1, 6);
    const question = Buffer.from("07657861706c6535036f72670000010001", "hex");
    question.write("example", 1, "latin1");
    const record = Buffer.from("c02bc02b00010001000000ff0004c0000201", "hex"); // the owner points at itself
    return Buffer.concat([
      head,
      Buffer.from("\x07example\x03org\x00\x00\x01\x00\x01", "latin1"),
      record.subarray(2),
    ]);
  };
  const lies: Script = (query) => ({ ...reply(query, []), flags: 0x8180, answers: [], questions: [] });
  const chain: Script = (query) =>
    reply(
      query,
      Array.from({ length: 500 }, (_, at) => ({
        name: at === 0 ? "example.org" : `n${at}.org`,
        type: 5,
        class: 1,
        ttl: 9,
        data: Buffer.from(`\x04n${String(at + 1).padStart(3, "0")}\x03org\x00`, "latin1"),
      })),
    );
  for (const script of [loops, chain, lies]) {
    await using peer = await openScripted(script);
    await using dns = await openTestDns({ nameserver: [server(`tcp://${HOST}:${peer.port}`)], ipv6: false });
    await assert.rejects(dns.resolver.lookup("example.org", { signal: signal() }));
  }
});

test("answers to another question or with another id are not believed", async () => {
  const script: Script = async (query) => {
    const wrong = { ...reply(query, [address("example.org", "6.6.6.6")]) };
    if (query.questions[0]?.name === "id.org")
      return Buffer.concat([Buffer.from([query.id >> 8, (query.id & 0xff) ^ 1]), Buffer.alloc(40)]);
    return { ...wrong, questions: [{ name: "evil.org", type: 1, class: 1 }] };
  };
  await using peer = await openScripted(script);
  await using honest = await openScripted(after(80, always("192.0.2.1")));
  await using dns = await openTestDns({ nameserver: [udp(peer), udp(honest)], ipv6: false });
  for (const name of ["example.org", "id.org"])
    assert.deepEqual(ipsOf(await dns.resolver.lookup(name, { signal: signal() })), ["192.0.2.1"]);
});

test("a server that refuses with a header alone is given up at once, and nothing of it is kept", async () => {
  for (const rcode of [1, 4, 5]) {
    let refuses = true;
    const ok = always("192.0.2.1");
    await using peer = await openScripted((query, by) =>
      refuses ? bareHeader(query.id, 0x8180 | rcode) : ok(query, by),
    );
    await using fallback = await openScripted(always("192.0.2.2"));
    const nameserver = [udp(peer)];
    await using dns = await openTestDns({ nameserver, ipv6: false });
    const ask = () => dns.resolver.lookup("example.org", { signal: AbortSignal.timeout(1000) });
    await assert.rejects(ask(), /refused the question/);
    refuses = false;
    assert.deepEqual(ipsOf(await ask()), ["192.0.2.1"]);
    refuses = true;
    await using both = await openTestDns({ nameserver, fallback: [udp(fallback)], ipv6: false });
    const found = await both.resolver.lookup("example.org", { signal: AbortSignal.timeout(1000) });
    assert.deepEqual(ipsOf(found), ["192.0.2.2"]);
  }
});

test("a header alone that says nothing of a failure, or has another id, is no answer", async () => {
  await using _ = new AsyncDisposableStack();
  const asked = createSocket("udp4").bind(0, HOST);
  await once(asked, "listening");
  _.defer(() => void asked.close());
  asked.on("message", (bytes, { port, address: from }) => {
    const query = decodeMessage(bytes);
    const { id } = query;
    for (const forged of [bareHeader(id ^ 1, 0x8185), bareHeader(id, 0x8180), bareHeader(id, 0x0105)])
      asked.send(forged, port, from);
    asked.send(encodeMessage(reply(query, [address("example.org", "192.0.2.1")])), port, from);
  });
  await using dns = await openTestDns({ nameserver: [udp(asked.address())], ipv6: false });
  assert.deepEqual(ipsOf(await dns.resolver.lookup("example.org", { signal: signal() })), ["192.0.2.1"]);
});

test("a right answer from another address or port is not believed", async () => {
  await using _ = new AsyncDisposableStack();
  const [asked, forger] = [createSocket("udp4"), createSocket("udp4")];
  for (const socket of [asked, forger]) {
    socket.bind(0, HOST);
    await once(socket, "listening");
    _.defer(() => void socket.close());
  }
  asked.on("message", (bytes, { port, address: from }) => {
    const query = decodeMessage(bytes);
    const answer = (ip: string) => encodeMessage(reply(query, [address("example.org", ip)]));
    forger.send(answer("6.6.6.6"), port, from, () => asked.send(answer("192.0.2.1"), port, from));
  });
  await using dns = await openTestDns({ nameserver: [udp(asked.address())], ipv6: false });
  const found = await dns.resolver.lookup("example.org", { signal: signal() });
  assert.deepEqual(ipsOf(found), ["192.0.2.1"]);
});

test("a name in another spelling than rules saw is not looked up", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  await using dns = await openTestDns({ nameserver: [udp(peer)], ipv6: false });
  for (const name of [
    "ex\\097mple.org",
    "example\\.org",
    "b\u00fccher.org",
    "a b.org",
    "a\0.org",
    "example.org..",
    "",
  ])
    await assert.rejects(dns.resolver.lookup(name, { signal: signal() }), /is no host name/);
  assert.equal(peer.asked.length, 0);
});

test("a list that fails to answer spoils the question under way and no later one", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  let broken = true;
  const geosite = () => {
    if (broken) throw new Error("a torn list");
    return null;
  };
  const policy = { conditions: [{ kind: "geosite" as const, category: "ads" }], servers: [udp(peer)] };
  const sets = { geosite, ruleSet: () => null, condition: () => ({ reads: [], match: () => false }) };
  await using dns = await openTestDns(
    { nameserver: [udp(peer)], nameserverPolicy: [policy], ipv6: false },
    { sets },
  );
  await assert.rejects(dns.resolver.lookup("example.org", { signal: signal() }), /a torn list/);
  broken = false;
  assert.deepEqual(ipsOf(await dns.resolver.lookup("example.org", { signal: signal() })), ["192.0.2.1"]);
});

test("rcode:// answers alone and is not kept", async () => {
  await using peer = await openScripted(always("192.0.2.1"));
  const policy = {
    conditions: [{ kind: "domain" as const, pattern: "+.ads.org" }],
    servers: [server("rcode://name_error")],
  };
  await using dns = await openTestDns({ nameserver: [udp(peer)], nameserverPolicy: [policy] });
  const view = await dns.query("x.ads.org.", 1, signal());
  assert.equal(view.status, 3);
  assert.equal(dns.explain("x.ads.org").cached, false);
  assert.equal(peer.asked.length, 0);
});

test("a server that is gone: connection refused or silence, and the next question works again", async () => {
  const gone = await openScripted(() => null);
  await gone[Symbol.asyncDispose]();
  await using peer = await openScripted(always("192.0.2.1"));
  await using dns = await openTestDns({
    nameserver: [server(`tcp://${HOST}:${gone.port}`), udp(peer)],
    ipv6: false,
  });
  assert.deepEqual(ipsOf(await dns.resolver.lookup("example.org", { signal: signal() })), ["192.0.2.1"]);
});

test("a server whose port is closed is given up at once, and a later one that answers is believed", async () => {
  const gone = await openScripted(() => null);
  await gone[Symbol.asyncDispose]();
  await using dns = await openTestDns({ nameserver: [udp(gone)] });
  // Long before the five seconds of a question are over, however busy this machine is: nothing ends it but the refusal.
  const lookup = dns.resolver.lookup("example.org", { family: 4, signal: AbortSignal.timeout(60_000) });
  await assert.rejects(lookup, /port is closed/);
  await using silent = await openScripted(() => null);
  await using peer = await openScripted(always("192.0.2.1"));
  await using other = await openTestDns({ nameserver: [udp(gone), udp(silent), udp(peer)], ipv6: false });
  assert.deepEqual(ipsOf(await other.resolver.lookup("example.org", { signal: signal() })), ["192.0.2.1"]);
});

test("a client that gives up early leaves the answer in the cache", async () => {
  await using peer = await openScripted(after(100, always("192.0.2.1")));
  await using dns = await openTestDns({ nameserver: [udp(peer)], ipv6: false });
  await assert.rejects(dns.resolver.lookup("example.org", { signal: AbortSignal.timeout(10) }));
  await until("the answer is kept", () => dns.explain("example.org").cached);
  assert.equal(peer.asked.length, 1);
});
