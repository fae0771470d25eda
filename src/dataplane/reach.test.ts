import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/router.ts";
import type { Facts, Rule } from "#core/rule.ts";
import type { Ip, Metadata } from "#core/session.ts";
import { OwnListeners } from "#net/listen/own-listeners.ts";
import { SelfDials } from "#net/dial/self-dials.ts";
import { ip, named, rulesOf, session } from "../../test/support/routing.ts";
import { ReachGuard } from "./reach.ts";

const ruleOf = (text: string): Rule => rulesOf([`${text},DIRECT`])[0] as Rule;

interface Case {
  readonly host?: string | null;
  readonly asked?: Ip | null;
  readonly rule?: string | null;
  readonly sniffedHost?: string;
}

function decisionOf({ host = null, asked = null, rule = null, sniffedHost }: Case): Decision {
  const facts: Facts = { host: sniffedHost ?? host, ip: asked, network: "tcp", port: 80 };
  return {
    outbound: named("DIRECT", { type: "Direct" }),
    chain: ["DIRECT"],
    groups: [],
    destination: { host, ip: asked, port: 80 },
    dnsMode: "normal",
    rule: rule === null ? null : ruleOf(rule),
    unruled: false,
    facts,
    ...(sniffedHost === undefined ? {} : { sniffedHost }),
  };
}

function clientAt(source: string, isRemote: boolean): Metadata {
  const base = session("198.51.100.1", {});
  const inbound = { ...base.inbound, ...(isRemote ? { isRemote: true as const } : {}) };
  return { ...base, source: { ip: ip(source), port: 4000 }, inbound };
}

const guardOf = (listeners: OwnListeners, opens = false) =>
  new ReachGuard(listeners, new SelfDials(listeners), opens);
const guard = guardOf(new OwnListeners());
const opens = (what: Case, dialled: string): boolean =>
  guard.of(clientAt("203.0.113.9", true), decisionOf(what))?.refusal("tcp", ip(dialled), 80) === null;

test("a rule names a private address where it is true of the address that is dialled, and not of any", () => {
  const asked = ip("192.168.1.9");
  for (const rule of [
    "IP-CIDR,192.168.0.0/16",
    "GEOIP,LAN",
    "IP-SUFFIX,0.0.1.9/16",
    "AND,((NETWORK,tcp),(IP-CIDR,192.168.1.0/24))",
    "OR,((DST-PORT,1),(IP-CIDR,192.168.1.0/24))",
  ])
    assert.equal(opens({ asked, rule }, "192.168.1.9"), true, rule);
  for (const rule of [
    "MATCH,",
    "IP-CIDR,0.0.0.0/0",
    "NOT,((IP-CIDR,8.8.8.8/32))",
    "NETWORK,tcp",
    "DST-PORT,80",
    "OR,((DST-PORT,80),(IP-CIDR,192.168.1.0/24))",
  ])
    assert.equal(opens({ asked, rule }, "192.168.1.9"), false, rule);
  assert.equal(opens({ asked }, "192.168.1.9"), false, "no rule");
  assert.equal(opens({ asked }, "203.0.114.1"), true);
});

test("what a name has besides the address that a rule matched stays shut", () => {
  const what = { host: "twice.example", asked: ip("192.168.1.9"), rule: "IP-CIDR,192.168.1.0/24" };
  assert.equal(opens(what, "192.168.1.9"), true);
  assert.equal(opens(what, "10.0.0.1"), false);
});

test("a name opens what it was resolved to, a name that the client only says does not", () => {
  const rule = "DOMAIN,nas.example";
  assert.equal(opens({ host: "nas.example", rule }, "192.168.1.9"), true);
  assert.equal(opens({ host: "nas.example", rule, sniffedHost: "nas.example" }, "192.168.1.9"), true);
  const said = { host: null, asked: ip("192.168.1.9"), rule, sniffedHost: "nas.example" };
  assert.equal(opens(said, "192.168.1.9"), false);
  assert.equal(opens({ ...said, host: "nas.example" }, "192.168.1.9"), false);
  assert.equal(opens({ host: "a.example", rule: "DOMAIN-KEYWORD,example" }, "192.168.1.9"), false);
});

test("own listeners: at any address of the machine, but for the DNS server, until they have gone", () => {
  const listeners = new OwnListeners();
  const reach = guardOf(listeners).of(clientAt("203.0.113.9", false), decisionOf({}));
  assert.ok(reach !== null);
  const isOpen = (text: string, port: number, network: "tcp" | "udp" = "tcp"): boolean =>
    reach.refusal(network, ip(text), port) === null;
  const at = { ip: ip("198.51.100.77"), port: 7890 };
  listeners.add("tcp", at, false);
  listeners.add("udp", { ...at, port: 53 }, true);
  listeners.setController([{ ip: at.ip, port: 9090 }]);
  assert.deepEqual([isOpen(at.ip, 7890), isOpen(at.ip, 9090), isOpen(at.ip, 22)], [false, false, true]);
  assert.deepEqual([isOpen(at.ip, 7890, "udp"), isOpen(at.ip, 53, "udp")], [true, true]);
  assert.equal(isOpen("198.51.100.78", 7890), true);
  listeners.remove("tcp", at);
  assert.equal(isOpen(at.ip, 7890), true);
});

test("local programs reach everything; allow-loopback-from-lan leaves the LAN nothing to be refused", () => {
  assert.equal(guard.of(clientAt("127.0.0.5", false), decisionOf({})), null);
  assert.equal(guard.of(clientAt("::1", true), decisionOf({})), null);
  const open = guardOf(new OwnListeners(), true);
  assert.equal(open.of(clientAt("203.0.113.9", false), decisionOf({})), null);
  const remote = open.of(clientAt("203.0.113.9", true), decisionOf({}));
  assert.equal(remote?.refusal("tcp", ip("127.0.0.1"), 80), null);
  assert.notEqual(remote?.refusal("tcp", ip("10.0.0.1"), 80), null);
});
