import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#core/errors.ts";
import { inboundTypesOf } from "#core/protocol.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import type { Facts, RuleOptions, RuleScope } from "#core/rule.ts";
import { parseIp } from "#net/address/ip.ts";
import { RULE_TYPES, ruleTypeOf } from "./index.ts";

const PLAIN: RuleOptions = { noResolve: false, source: false };
const NO_RESOLVE: RuleOptions = { noResolve: true, source: false };
const SCOPE: RuleScope = {
  ruleSet: (name) => ({
    reads: ["ip"],
    size: 1,
    match: ({ ip }) => (ip === undefined ? undefined : ip === name),
  }),
  geosite: (name) => ({
    reads: ["host"],
    size: 3,
    match: ({ host }) => (host === undefined ? undefined : host === `${name}.com`),
  }),
  geoip: () => null,
  asn: () => null,
  inboundTypes: inboundTypesOf(PROTOCOLS),
};

function parse(type: string, payload: string, options = PLAIN) {
  const found = ruleTypeOf(type);
  assert.ok(found, type);
  return found.parse(payload, options, SCOPE);
}

const address = (text: string) => ({ ip: parseIp(text) }) as Facts;
const source = (text: string) => ({ sourceIp: parseIp(text) }) as Facts;
const program = (path: string, name = path.split("/").at(-1) as string) =>
  ({ process: { path, name, uid: 0 } }) as Facts;

const ROWS: readonly (readonly [type: string, payload: string, yes: Facts, no: Facts])[] = [
  ["DOMAIN", "WWW.Example.org", { host: "www.example.org" }, { host: "example.org" }],
  ["DOMAIN", "bücher.example", { host: "xn--bcher-kva.example" }, { host: null }],
  ["DOMAIN-SUFFIX", "example.org", { host: "a.example.org" }, { host: "badexample.org" }],
  ["DOMAIN-SUFFIX", "+.example.org", { host: "example.org" }, { host: "org" }],
  ["DOMAIN-KEYWORD", "AMPL", { host: "example.org" }, { host: "test.org" }],
  ["DOMAIN-REGEX", "^AD\\d{1,3}\\.", { host: "ad12.x.com" }, { host: "bad12.x.com" }],
  ["DOMAIN-WILDCARD", "*.ex?mple.*", { host: "a.b.example.org" }, { host: "example.org" }],
  ["GEOSITE", "google", { host: "google.com" }, { host: "a.com" }],
  ["GEOSITE", "!google", { host: "a.com" }, { host: "google.com" }],
  ["GEOIP", "LAN", address("10.1.1.1"), address("8.8.8.8")],
  ["GEOIP", "!lan", address("8.8.8.8"), address("fe80::1")],
  ["SRC-GEOIP", "LAN", source("10.1.1.1"), source("8.8.8.8")],
  ["IP-CIDR", "10.1.2.3/8", address("10.9.9.9"), address("11.0.0.1")],
  ["IP-CIDR6", "2001:db8::/32", address("2001:db8::1"), address("2001:db9::1")],
  ["SRC-IP-CIDR", "192.168.1.0/24", source("192.168.1.9"), source("192.168.2.9")],
  ["IP-SUFFIX", "0.0.0.1/8", address("9.9.9.1"), address("9.9.9.2")],
  ["IP-SUFFIX", "::1/3", address("2001::9"), address("2001::2")],
  ["SRC-IP-SUFFIX", "0.0.1.1/9", source("9.9.3.1"), source("9.9.2.1")],
  ["SRC-MAC", "02-00-5E-00-53-02/02:00:5e:00:53:01", { sourceMac: "02:00:5e:00:53:01" }, { sourceMac: null }],
  ["SRC-PORT", "1000-2000", { sourcePort: 1500 }, { sourcePort: 2001 }],
  ["DST-PORT", "80/ 443 /8000-9000", { port: 443 }, { port: 81 }],
  ["IN-PORT", "7890", { inboundPort: 7890 }, { inboundPort: 1 }],
  ["IN-TYPE", "socks/tun", { inboundType: "Socks4" }, { inboundType: "HTTP" }],
  ["IN-USER", "alice/bob", { inboundUser: "bob" }, { inboundUser: null }],
  ["IN-NAME", "lan", { inboundName: "lan" }, { inboundName: "wan" }],
  ["PROCESS-NAME", "CURL", program("/usr/bin/curl"), program("/usr/bin/curl2")],
  ["PROCESS-PATH", "/usr/bin/curl", program("/usr/bin/curl"), { process: null }],
  ["PROCESS-NAME-REGEX", "^Cu", program("/usr/bin/curl"), program("/cu/x")],
  ["PROCESS-PATH-REGEX", "/bin/", program("/usr/bin/curl"), program("/x")],
  ["PROCESS-NAME-WILDCARD", "c?rl", program("/usr/bin/curl"), program("/crl")],
  ["PROCESS-PATH-WILDCARD", "/usr/*", program("/usr/bin/curl"), program("/opt/x")],
  ["NETWORK", "UDP", { network: "udp" }, { network: "tcp" }],
  ["DSCP", "0-10/46", { dscp: 46 }, { dscp: null }],
  ["RULE-SET", "1.2.3.4", address("1.2.3.4"), address("1.2.3.5")],
  ["AND", "((NETWORK,tcp),(DST-PORT,443))", { network: "tcp", port: 443 }, { network: "udp" }],
  ["OR", "((NETWORK,tcp),(DST-PORT,443))", { port: 443 }, { network: "udp", port: 1 }],
  ["NOT", "((NETWORK,tcp))", { network: "udp" }, { network: "tcp" }],
  ["NOT", "((IP-CIDR,10.0.0.0/8,no-resolve))", { host: "a.com" }, address("10.0.0.1")],
  [
    "SUB-RULE",
    "(OR,((NETWORK,tcp),(DOMAIN-REGEX,^(a|b),c$)))",
    { host: "a,c", network: "udp" },
    { host: "c", network: "udp" },
  ],
  ["MATCH", "", {}, {}],
];

test("each type says yes and no", () => {
  for (const [type, payload, yes, no] of ROWS) {
    const { matcher } = parse(type, payload);
    assert.equal(matcher.match(yes), true, `${type},${payload} yes`);
    if (type !== "MATCH") assert.equal(matcher.match(no), false, `${type},${payload} no`);
  }
  const covered = new Set(ROWS.map(([type]) => type));
  const missing = RULE_TYPES.map(({ type }) => type).filter((type) => !covered.has(type));
  assert.deepEqual(missing, ["IP-ASN", "SRC-IP-ASN", "UID"]);
});

test(
  "UID is for systems that know user ids",
  { skip: process.platform !== "linux" && "SKIP UID: Linux only" },
  () => {
    const { matcher } = parse("UID", "1000/0");
    assert.equal(matcher.match({ uid: 1000 }), true);
    assert.equal(matcher.match({ uid: null }), false);
  },
);

test("payloads in API form (configuration.md §15.3)", () => {
  const rows: [string, string, string][] = [
    ["DOMAIN", "München.DE", "münchen.de"],
    ["DOMAIN-SUFFIX", "+.Example.org", "+.example.org"],
    ["IP-CIDR", "10.1.2.3/8", "10.1.2.3/8"],
    ["SRC-IP-CIDR", "::ffff:10.1.2.3/104", "10.1.2.3/8"],
    ["IP-CIDR6", "2001:DB8:0::/32", "2001:db8::/32"],
    ["IP-CIDR", "1.1.1.1", "1.1.1.1/32"],
    ["GEOIP", "CN", "cn"],
    ["NETWORK", "UDP", "udp"],
    ["IN-TYPE", "socks/http", "SOCKS/HTTP"],
    ["AND", "((DOMAIN,A.com), (NETWORK,UDP))", "((Domain,a.com) && (Network,udp))"],
    ["OR", "((DOMAIN,a.com),(NETWORK,udp))", "((Domain,a.com) || (Network,udp))"],
    ["NOT", "((DOMAIN,a.com))", "(!(Domain,a.com))"],
    ["AND", "((NOT,((DOMAIN,a.com))),(DST-PORT,1))", "((NOT,(!(Domain,a.com))) && (DstPort,1))"],
    ["OR", "((IP-CIDR,10.1.2.3/8,src),(NETWORK,UDP))", "((SrcIPCIDR,10.1.2.3/8) || (Network,udp))"],
    ["SUB-RULE", "(AND,((NETWORK,TCP),(DOMAIN,A.com)))", "(AND,((NETWORK,TCP),(DOMAIN,A.com)))"],
    ["MATCH", "", ""],
  ];
  for (const [type, payload, shown] of rows) assert.equal(parse(type, payload).payload, shown);
});

test("`src` makes the source's type of a rule", () => {
  const source = { noResolve: true, source: true };
  const rows: [string, string, string][] = [
    ["IP-CIDR", "10.0.0.0/8", "SrcIPCIDR"],
    ["IP-CIDR6", "fd00::/8", "SrcIPCIDR"],
    ["IP-SUFFIX", "0.0.0.1/8", "SrcIPSuffix"],
    ["GEOIP", "LAN", "SrcGeoIP"],
    ["GEOIP", "CN", "SrcGeoIP"],
    ["IP-ASN", "13335", "SrcIPASN"],
  ];
  for (const [type, payload, shown] of rows) assert.equal(parse(type, payload, source).apiType, shown, type);
  assert.equal(parse("SRC-GEOIP", "CN").apiType, "SrcGeoIP");
});

test("errors say what would be right", () => {
  const rows: [string, string, RegExp][] = [
    ["DOMAIN", "a b", /write something like www\.example\.org/],
    ["DOMAIN-SUFFIX", "", /write something like example\.org/],
    ["DOMAIN-REGEX", "(a)\\1", /without back-references/],
    ["IP-CIDR", "10.0.0.0/33", /write 10\.0\.0\.0\/8/],
    ["IP-SUFFIX", "1.2.3.4", /0\.0\.0\.1\/8/],
    ["DST-PORT", "", /at least one port/],
    ["DST-PORT", "70000", /from 0 to 65535/],
    ["DST-PORT", Array.from({ length: 29 }, (_, at) => at).join("/"), /at most 28/],
    ["DSCP", "64", /from 0 to 63/],
    ["IN-TYPE", "carrier-pigeon", /"CARRIER-PIGEON" is no inbound type: one of HTTP/],
    ["IN-USER", "a//b", /joined by/],
    ["NETWORK", "icmp", /tcp or udp/],
    ["IP-ASN", "x", /write 13335/],
    ["NOT", "((NETWORK,tcp),(NETWORK,udp))", /NOT takes one condition, got 2/],
    ["AND", "((NETWORK,tcp)", /closing bracket is missing/],
    ["AND", "((NETWORK,tcp)(NETWORK,udp))", /comma is missing/],
    ["AND", "((NETWORK))", /NETWORK has no payload/],
    ["AND", "((NONSENSE,x))", /unknown rule type "NONSENSE"/],
    ["AND", "((MATCH,x))", /MATCH cannot stand inside/],
    ["AND", "((IP-CIDR,x))", /IP-CIDR: .*is no network/],
    ["MATCH", "x", /MATCH has no payload/],
  ];
  for (const [type, payload, message] of rows)
    assert.throws(
      () => parse(type, payload),
      (error) => error instanceof ConfigError && message.test(error.message),
      `${type},${payload}`,
    );
});

test("Kleene: a part that decides needs no other part", () => {
  const both = parse("AND", "((IP-CIDR,10.0.0.0/8),(DOMAIN,a.com))").matcher;
  assert.equal(both.match({ host: "b.com" }), false);
  assert.equal(both.match({ host: "a.com" }), undefined);
  assert.deepEqual(both.reads, ["ip", "host"]);
  const either = parse("OR", "((IP-CIDR,10.0.0.0/8),(DOMAIN,a.com))").matcher;
  assert.equal(either.match({ host: "a.com" }), true);
  assert.equal(either.match({ host: "b.com" }), undefined);
});

test("no-resolve matches known addresses only, and asks for none", () => {
  for (const [type, payload] of [
    ["IP-CIDR", "0.0.0.0/0"],
    ["GEOIP", "lan"],
    ["RULE-SET", "10.0.0.1"],
    ["IP-SUFFIX", "0.0.0.1/8"],
  ] as const) {
    const { matcher } = parse(type, payload, NO_RESOLVE);
    assert.equal(matcher.match({ host: "a.com" }), false, type);
    assert.equal(matcher.match(address("10.0.0.1")), true, type);
  }
  const bySource = parse("RULE-SET", "10.0.0.1", { noResolve: true, source: true }).matcher;
  assert.deepEqual(bySource.reads, ["sourceIp"]);
  assert.equal(bySource.match({ ...address("1.1.1.1"), ...source("10.0.0.1") }), true);
});

test("GEOSITE shows the number of its records", () => {
  assert.equal((parse("GEOSITE", "google").matcher as { size?: number }).size, 3);
  assert.equal((parse("GEOIP", "lan").matcher as { size?: number }).size, undefined);
});
