import assert from "node:assert/strict";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { GroupEnv, GroupSettings, TestPlan } from "#core/group.ts";
import { BOTH_NETWORKS, type Outbound } from "#core/outbound.ts";
import type { Ip, Metadata, Network } from "#core/session.ts";
import { DelayBook } from "#net/dial/delay-book.ts";
import { fallback } from "./fallback.ts";
import { jumpHash, loadBalance } from "./load-balance.ts";
import { select } from "./select.ts";
import { UrlTestGroup } from "./url-test.ts";

const URL_UNDER_TEST = "http://probe.example/";

function leaf(name: string): Outbound {
  const refuse = () => Promise.reject(new DialError("unsupported", "not dialled here"));
  return {
    name,
    type: "Direct",
    networks: BOTH_NETWORKS,
    connect: refuse,
    associate: refuse,
    async [Symbol.asyncDispose]() {},
  };
}

/** Members whose delays a test sets; every probe is written down. */
function world(names: readonly string[], settings: Partial<GroupSettings> = {}) {
  let members = names.map(leaf);
  const delays = new DelayBook();
  const answers = new Map<string, number>();
  const probes: string[] = [];
  const stored = new Map<string, string>();
  const env: GroupEnv = {
    name: "G",
    members: () => members,
    timesListed: new Map(),
    settings: {
      url: URL_UNDER_TEST,
      timeoutMs: 5000,
      expected: null,
      intervalSeconds: 0,
      lazy: true,
      maxFailedTimes: 5,
      disableUdp: false,
      defaultSelected: null,
      ...settings,
    },
    choices: {
      selected: (group) => stored.get(group) ?? null,
      select: (group, member) => void stored.set(group, member),
      unselect: (group) => void stored.delete(group),
    },
    health: {
      delays,
      async test(member: Outbound, { url }: TestPlan) {
        probes.push(member.name);
        const delayMs = answers.get(member.name) ?? 0;
        delays.record(member.name, url, delayMs, true);
        if (delayMs === 0) throw new DialError("timeout", "no answer");
        return delayMs;
      },
    },
    lines: {
      isBuiltIn: () => true,
      dialerOf: () => null,
      line: (nodes) => nodes.at(-1) as Outbound,
    },
  };
  const measured = (results: Record<string, number>) => {
    for (const [name, delayMs] of Object.entries(results)) delays.record(name, URL_UNDER_TEST, delayMs, true);
  };
  return { env, measured, answers, probes, stored, replace: (next: string[]) => (members = next.map(leaf)) };
}

function session(host: string, source = "10.0.0.1"): Metadata {
  return {
    id: "1",
    network: "tcp",
    source: { ip: source as Ip, port: 1 },
    destination: { host, ip: null, port: 443 },
    inbound: {
      name: "in",
      type: "HTTP",
      user: null,
      local: { ip: source as Ip, port: 1 },
      ruleList: null,
      target: null,
    },
    dscp: null,
    acceptedAtMs: 0,
  };
}

const opened = <T>(
  kind: { open(options: never, env: GroupEnv): Promise<T> },
  options: object,
  env: GroupEnv,
) => kind.open(options as never, env);

test("select: the first member until one is chosen; a vanished choice falls back to the first", async () => {
  const { env, replace, stored } = world(["a", "b"]);
  await using group = await opened(select, {}, env);
  assert.equal(group.pick(null).name, "a");
  assert.ok("select" in group && typeof group.select === "function");
  assert.equal(group.select("unknown"), false);
  assert.equal(group.select("b"), true);
  assert.equal(group.pick(null).name, "b");
  assert.equal(stored.get("G"), "b");
  replace(["a", "c"]);
  assert.equal(group.pick(null).name, "a");
});

test("select: default-selected until one is chosen, and where the choice has gone", async () => {
  const { env, replace, stored } = world(["a", "b", "c"], { defaultSelected: "b" });
  await using group = await opened(select, {}, env);
  assert.equal(group.pick(null).name, "b");
  stored.set("G", "c");
  assert.equal(group.pick(null).name, "c");
  replace(["a", "b"]);
  assert.equal(group.pick(null).name, "b");
  replace(["a", "d"]);
  assert.equal(group.pick(null).name, "a");
});

test("load-balance: UDP goes to members that carry it, and to none under disable-udp", async () => {
  const kinds = ["consistent-hashing", "round-robin", "sticky-sessions"];
  const tcpOnly = { networks: new Set<Network>(["tcp"]) };
  const udp = (at: number): Metadata => ({ ...session(`site${at}.example`), network: "udp" });
  for (const strategy of kinds) {
    const { env, measured } = world(["a", "b", "c"]);
    const members = [{ ...leaf("a"), ...tcpOnly }, leaf("b"), { ...leaf("c"), ...tcpOnly }];
    await using group = await opened(loadBalance, { strategy }, { ...env, members: () => members });
    for (let at = 0; at < 20; at++) assert.equal(group.pick(udp(at)).name, "b", strategy);
    assert.ok(group.networks.has("udp"));
    measured({ b: 0 });
    assert.equal(group.pick(udp(1)).name, "b", "a dead one rather than one that cannot");
    const settings = { ...env.settings, disableUdp: true };
    await using closed = await opened(
      loadBalance,
      { strategy },
      { ...env, members: () => members, settings },
    );
    assert.ok(!closed.networks.has("udp"));
  }
});

test("load-balance: a member that is listed twice gets twice the share", async () => {
  for (const strategy of ["round-robin", "consistent-hashing", "sticky-sessions"]) {
    const { env } = world(["a", "b"]);
    await using group = await opened(loadBalance, { strategy }, { ...env, timesListed: new Map([["a", 2]]) });
    const picks = Array.from({ length: 600 }, (_, at) => group.pick(session(`site${at}.example`)).name);
    const share = picks.filter((name) => name === "a").length / picks.length;
    assert.ok(share > 0.6 && share < 0.73, `${strategy}: ${share}`);
  }
});

test("url-test: in the middle of its own tests a measured choice stands, then the best is taken", async () => {
  const { env, measured, answers } = world(["a", "b"], { lazy: false });
  answers.set("a", 300).set("b", 100);
  const { promise, resolve } = Promise.withResolvers<void>();
  const { test: probe, delays } = env.health;
  const slow: typeof probe = async (member, plan, signal) => {
    if (member.name === "b") await promise;
    return probe(member, plan, signal);
  };
  measured({ a: 300, b: 400 });
  await using group = new UrlTestGroup(0, { ...env, health: { delays, test: slow } });
  assert.equal(group.pick(null).name, "a");
  measured({ b: 50 });
  assert.equal(group.pick(null).name, "a");
  resolve();
  await new Promise(setImmediate);
  assert.equal(group.pick(null).name, "b");
});

test("configuration.md §12.2 url-test: lowest delay, tolerance, a result counts at once, pin while alive", async () => {
  const { env, measured } = world(["a", "b", "c"]);
  await using group = new UrlTestGroup(50, env);
  assert.equal(group.pick(null).name, "a");
  measured({ a: 300, b: 100, c: 0 });
  assert.equal(group.pick(null).name, "b");
  measured({ a: 60 });
  assert.equal(group.pick(null).name, "b", "40 ms are within the tolerance");
  measured({ a: 49 });
  assert.equal(group.pick(null).name, "a");
  measured({ a: 0 });
  assert.equal(group.pick(null).name, "b", "a dead member is left at once");
  group.select("c");
  assert.equal(group.pick(null).name, "b", "a dead pin does not count");
  measured({ c: 900 });
  assert.equal(group.pick(null).name, "c");
  group.unpin();
  assert.equal(group.pick(null).name, "b");
});

test("configuration.md §12.2 fallback: the first that is alive, and back", async () => {
  const { env, measured } = world(["a", "b"]);
  await using group = await opened(fallback, {}, env);
  measured({ a: 0, b: 20 });
  assert.equal(group.pick(null).name, "b");
  measured({ a: 500 });
  assert.equal(group.pick(null).name, "a");
  measured({ a: 0, b: 0 });
  assert.equal(group.pick(null).name, "a", "none alive: the first");
});

test("configuration.md §12.2 an unused lazy group sends no probe; the first use tests once", async () => {
  const { env, probes, answers } = world(["a", "b"], { intervalSeconds: 300 });
  answers.set("a", 30).set("b", 10);
  await using group = await opened(fallback, {}, env);
  group.pick(null);
  assert.deepEqual(probes, []);
  group.pick(session("x.example"));
  group.pick(session("y.example"));
  await new Promise(setImmediate);
  assert.deepEqual(probes, ["a", "b"]);
});

test("members that a provider brings later are tested at the next use, once", async () => {
  const { env, probes, replace } = world(["COMPATIBLE"], { intervalSeconds: 300 });
  await using group = await opened(fallback, {}, env);
  const use = async (): Promise<void> => {
    group.pick(session("x.example"));
    await new Promise(setImmediate);
  };
  await use();
  replace(["a", "b"]);
  await use();
  await use();
  assert.deepEqual(probes, ["COMPATIBLE", "a", "b"]);
});

test("configuration.md §12.1 failed dials start a test: a refusal at once, others in a row", async () => {
  const { env, probes } = world(["a"], { maxFailedTimes: 3 });
  await using group = await opened(fallback, {}, env);
  group.dialled(new DialError("timeout", "x"));
  group.dialled(new DialError("timeout", "x"));
  group.dialled(null);
  group.dialled(new DialError("timeout", "x"));
  group.dialled(new DialError("timeout", "x"));
  assert.deepEqual(probes, []);
  group.dialled(new DialError("timeout", "x"));
  await new Promise(setImmediate);
  assert.deepEqual(probes, ["a"]);
  group.dialled(new DialError("refused", "x"));
  await new Promise(setImmediate);
  assert.deepEqual(probes, ["a", "a"]);
});

test("load-balance: consistent hashing by site, sticky by source and site, round-robin in turn, dead ones skipped", async () => {
  const names = ["a", "b", "c", "d"];
  const { env, measured } = world(names);
  await using hashing = await opened(loadBalance, { strategy: "consistent-hashing" }, env);
  const picks = Array.from({ length: 200 }, (_, at) => hashing.pick(session(`site${at}.example`)).name);
  assert.deepEqual([...new Set(picks)].sort(), names);
  assert.equal(hashing.pick(session("www.site1.co.uk")).name, hashing.pick(session("img.site1.co.uk")).name);

  await using robin = await opened(loadBalance, { strategy: "round-robin" }, env);
  const turns = Array.from({ length: 5 }, () => robin.pick(session("x.example")).name);
  assert.deepEqual(turns, ["a", "b", "c", "d", "a"]);
  measured({ b: 0 });
  assert.deepEqual([robin.pick(session("x")).name, robin.pick(session("x")).name], ["c", "d"]);

  await using sticky = await opened(loadBalance, { strategy: "sticky-sessions" }, env);
  const first = sticky.pick(session("x.example", "10.0.0.7")).name;
  for (let round = 0; round < 5; round++)
    assert.equal(sticky.pick(session("x.example", "10.0.0.7")).name, first);
});

test("jump hash moves only its share of the keys", () => {
  let moved = 0;
  for (let key = 0; key < 10_000; key++) if (jumpHash(key * 7919, 10) !== jumpHash(key * 7919, 11)) moved++;
  assert.ok(moved > 500 && moved < 1400, `${moved} of 10,000 moved`);
});
