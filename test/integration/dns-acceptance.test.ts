/** What `dns` in a file does for a client of the running program. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeMessage } from "#dns/message.ts";
import { addressesIn, askUdp, questionOf, TYPE_A, TYPE_AAAA } from "../support/dns-client.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";
import { address, always, openScripted, reply } from "./dns-kit.ts";

const TYPE_HTTPS = 65;

test("configuration.md 17.7: fake-IP from network + 4, TTL 1, AAAA and HTTPS empty, filters in three modes", async () => {
  const [port] = (await freePorts(1)) as [number];
  await using real = await openScripted(always("203.0.113.1"));
  const answersWith = async (filter: string) => {
    await using _core = await startCore(`
dns:
  enable: true
  listen: 127.0.0.1:${port}
  enhanced-mode: fake-ip
  nameserver: [127.0.0.1:${real.port}]
  default-nameserver: [127.0.0.1]
${filter}`);
    const first = await askUdp(port, "first.example");
    for (const type of [TYPE_AAAA, TYPE_HTTPS]) {
      const { flags, answers } = await askUdp(port, "first.example", type);
      assert.deepEqual([flags & 0xf, answers], [0, []]);
    }
    const listed = await askUdp(port, "www.listed.example");
    return [first, listed].map((answer) => `${addressesIn(answer).join()} ${answer.answers[0]?.ttl}`);
  };
  const realOne = "203.0.113.1 300";
  assert.deepEqual(await answersWith(`  fake-ip-filter: ["+.listed.example"]`), ["198.18.0.4 1", realOne]);
  const rules = `  fake-ip-filter-mode: rule
  fake-ip-range: 10.9.8.1/24
  fake-ip-filter: ["DOMAIN-SUFFIX,listed.example,real-ip", "MATCH,fake-ip"]`;
  assert.deepEqual(await answersWith(rules), ["10.9.8.4 1", realOne]);
});

test("configuration.md 17.7: the whitelist fakes what is listed and nothing else", async () => {
  const [port] = (await freePorts(1)) as [number];
  await using real = await openScripted(always("203.0.113.1"));
  await using _core = await startCore(`
dns:
  enable: true
  listen: 127.0.0.1:${port}
  enhanced-mode: fake-ip
  fake-ip-filter-mode: whitelist
  fake-ip-filter: ["+.listed.example"]
  nameserver: [127.0.0.1:${real.port}]
  default-nameserver: [127.0.0.1]
`);
  assert.deepEqual(addressesIn(await askUdp(port, "other.example")), ["203.0.113.1"]);
  assert.deepEqual(addressesIn(await askUdp(port, "www.listed.example")), ["198.18.0.4"]);
});

test("configuration.md 17.8: policies in file order, comma and rule-set keys, lists and single values", async () => {
  const [port] = (await freePorts(1)) as [number];
  await using none = await openScripted((query) => reply(query, [], 2));
  const numbered = await Promise.all(
    [1, 2, 3, 4].map((number) => openScripted(always(`203.0.113.${number}`))),
  );
  await using _all = numbered.reduce((stack, peer) => (stack.use(peer), stack), new AsyncDisposableStack());
  const [main, comma, set, wide] = numbered.map((peer) => `127.0.0.1:${peer.port}`);
  await using _core = await startCore(`
rule-providers:
  mine: { type: inline, behavior: domain, payload: ["+.set.example"] }
dns:
  enable: true
  listen: 127.0.0.1:${port}
  enhanced-mode: normal
  nameserver: [${main}]
  default-nameserver: [127.0.0.1]
  nameserver-policy:
    "a.example,+.b.example": [127.0.0.1:${none.port}, ${comma}]
    "rule-set:mine": ${set}
    "+.example": ${wide}
    "+.deep.set.example": ${main}
`);
  const answers: Record<string, string> = {};
  for (const name of [
    "a.example",
    "x.a.example",
    "y.b.example",
    "set.example",
    "deep.set.example",
    "other.test",
  ])
    answers[name] = addressesIn(await askUdp(port, name, TYPE_A)).join();
  assert.deepEqual(answers, {
    "a.example": "203.0.113.2",
    "x.a.example": "203.0.113.4",
    "y.b.example": "203.0.113.2",
    "set.example": "203.0.113.3",
    "deep.set.example": "203.0.113.3",
    "other.test": "203.0.113.1",
  });
});

test("dns.md §16.8: hosts with an IPv4 address only: AAAA is empty and nothing is forwarded", async () => {
  const [port] = (await freePorts(1)) as [number];
  await using upstream = await openScripted((query) =>
    reply(query, [address("pinned.example", "2001:db8::1")]),
  );
  await using _core = await startCore(`
hosts: { pinned.example: 192.0.2.8 }
dns:
  enable: true
  listen: 127.0.0.1:${port}
  ipv6: true
  nameserver: [127.0.0.1:${upstream.port}]
  default-nameserver: [127.0.0.1]
`);
  assert.deepEqual(addressesIn(await askUdp(port, "pinned.example")), ["192.0.2.8"]);
  assert.deepEqual(addressesIn(await askUdp(port, "pinned.example", TYPE_AAAA)), []);
  assert.equal(upstream.asked.length, 0);
});

test("dns.md §16.14: DoH by GET and POST; wrong content type 500, PUT 405", async () => {
  const [controller] = (await freePorts(1)) as [number];
  await using _core = await startCore(`
external-controller: 127.0.0.1:${controller}
external-doh-server: /dns-query
dns: { enable: true, enhanced-mode: fake-ip, nameserver: [rcode://refused], default-nameserver: [127.0.0.1] }
`);
  const url = `http://127.0.0.1:${controller}/dns-query`;
  const message = Buffer.from(questionOf("doh.example"));
  const type = "application/dns-message";
  const post = (method: string, contentType: string) =>
    fetch(url, { method, body: message, headers: { "content-type": contentType } });
  for (const answer of [
    await fetch(`${url}?dns=${message.toString("base64url")}`),
    await post("POST", type),
  ]) {
    assert.deepEqual([answer.status, answer.headers.get("content-type")], [200, type]);
    assert.deepEqual(addressesIn(decodeMessage(Buffer.from(await answer.arrayBuffer()))), ["198.18.0.4"]);
  }
  assert.equal((await post("POST", "text/plain")).status, 500);
  assert.equal((await post("PUT", type)).status, 405);
});
