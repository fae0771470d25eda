/** The two laws that every registered rule type obeys, and that its payload survives being shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#core/errors.ts";
import { inboundTypesOf } from "#core/protocol.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import type { FactName, Facts, Matcher, RuleData, RuleOptions, RuleScope } from "#core/rule.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { ip } from "../support/routing.ts";

const KNOWN: readonly Required<Facts>[] = [
  {
    network: "tcp",
    host: "www.example.org",
    ip: ip("10.1.2.3"),
    port: 443,
    sourceIp: ip("192.168.1.2"),
    sourceMac: "02:00:5e:00:53:01",
    sourcePort: 50000,
    inboundName: "lan",
    inboundType: "Socks5",
    inboundPort: 7890,
    inboundUser: "alice",
    dscp: 46,
    process: { path: "/usr/bin/curl", name: "curl", uid: 1000 },
    uid: 1000,
  },
  {
    network: "udp",
    host: null,
    ip: null,
    port: 53,
    sourceIp: ip("fd00::1"),
    sourceMac: null,
    sourcePort: 1,
    inboundName: "",
    inboundType: "Tun",
    inboundPort: 0,
    inboundUser: null,
    dscp: null,
    process: null,
    uid: null,
  },
];

const data = (reads: readonly FactName[]): RuleData => ({
  reads,
  size: 7,
  match: (facts) =>
    reads.some((name) => facts[name] === undefined) ? undefined : facts[reads[0] as FactName] !== null,
});
const SCOPE: RuleScope = {
  ruleSet: (name) => (name === "ips" ? data(["ip"]) : name === "names" ? data(["host"]) : null),
  geosite: () => data(["host"]),
  geoip: () => data(["ip"]),
  asn: () => data(["ip"]),
  inboundTypes: inboundTypesOf(PROTOCOLS),
};

/** A good payload or more for every type; the contract fails for a type that is missing here. */
const PAYLOADS: Readonly<Record<string, readonly string[]>> = {
  DOMAIN: ["www.example.org"],
  "DOMAIN-SUFFIX": ["example.org"],
  "DOMAIN-KEYWORD": ["example"],
  "DOMAIN-REGEX": ["^www\\."],
  "DOMAIN-WILDCARD": ["*.example.???"],
  GEOSITE: ["google", "!google@cn"],
  GEOIP: ["CN", "!CN", "LAN", "!LAN"],
  "SRC-GEOIP": ["CN", "LAN"],
  "IP-ASN": ["13335"],
  "SRC-IP-ASN": ["13335"],
  "IP-CIDR": ["10.0.0.0/8"],
  "IP-CIDR6": ["fd00::/8"],
  "SRC-IP-CIDR": ["192.168.0.0/16"],
  "IP-SUFFIX": ["0.0.0.3/8"],
  "SRC-MAC": ["02:00:5e:00:53:01/02:00:5e:00:53:02"],
  "SRC-IP-SUFFIX": ["0.0.0.2/8"],
  "SRC-PORT": ["50000"],
  "DST-PORT": ["443/8000-9000"],
  "IN-PORT": ["7890"],
  "IN-TYPE": ["SOCKS/HTTP"],
  "IN-USER": ["alice/bob"],
  "IN-NAME": ["lan"],
  "PROCESS-NAME": ["curl"],
  "PROCESS-PATH": ["/usr/bin/curl"],
  "PROCESS-NAME-REGEX": ["^cu"],
  "PROCESS-PATH-REGEX": ["bin"],
  "PROCESS-NAME-WILDCARD": ["c*"],
  "PROCESS-PATH-WILDCARD": ["/usr/*"],
  UID: ["1000"],
  NETWORK: ["tcp"],
  DSCP: ["46"],
  "RULE-SET": ["ips", "names"],
  AND: ["((NETWORK,tcp),(IP-CIDR,10.0.0.0/8))", "((NETWORK,tcp),(OR,((UID,1),(DOMAIN,a.b))))"],
  OR: ["((DOMAIN,a.com),(DST-PORT,443))"],
  NOT: ["((SRC-PORT,1))"],
  "SUB-RULE": ["(AND,((NETWORK,udp),(DST-PORT,443)))"],
  MATCH: [""],
};

const OPTIONS: Readonly<Record<string, RuleOptions>> = {
  plain: { noResolve: false, source: false },
  "no-resolve": { noResolve: true, source: false },
  src: { noResolve: true, source: true },
};

function guarded(facts: Facts, reads: readonly FactName[]): Facts {
  return new Proxy(facts, {
    get(target, name) {
      assert.ok(
        reads.includes(name as FactName),
        `read ${String(name)}, but reads names only ${reads.join(", ") || "nothing"}`,
      );
      return target[name as FactName];
    },
    has: () => assert.fail("looked whether a fact is there"),
    ownKeys: () => assert.fail("looked at all facts"),
  });
}

/** Each fact known or not, in every combination of two: enough to reach every branch of a condition. */
function* subsets(facts: Facts): Generator<Facts> {
  const names = Object.keys(facts) as FactName[];
  yield facts;
  for (const first of names)
    for (const second of names)
      yield Object.fromEntries(names.filter((n) => n !== first && n !== second).map((n) => [n, facts[n]]));
}

function checkLaws(matcher: Matcher, noResolve: boolean): void {
  for (const known of KNOWN)
    for (const facts of subsets(known)) {
      const verdict = matcher.match(guarded(facts, matcher.reads));
      const lacking = matcher.reads.filter((name) => facts[name] === undefined);
      if (lacking.length === 0) assert.notEqual(verdict, undefined, "all it reads is known: it must decide");
    }
  const blind = matcher.match(guarded({}, matcher.reads));
  if (matcher.reads.length > 0 && !noResolve)
    assert.equal(blind, undefined, "nothing is known: it cannot tell");
}

for (const type of RULE_TYPES) {
  test(`rule type ${type.type} obeys the laws`, () => {
    const payloads = PAYLOADS[type.type];
    assert.ok(payloads !== undefined, "give the contract a payload of this type");
    for (const payload of payloads)
      for (const [name, options] of Object.entries(OPTIONS)) {
        if (name !== "plain" && !type.allowsOptions) continue;
        const parsed = type.parse(payload, options, SCOPE);
        checkLaws(parsed.matcher, options.noResolve);
        if (name === "src") assert.ok(!parsed.matcher.reads.includes("ip"), "src reads the source");
      }
  });

  test(`rule type ${type.type} refuses nonsense with ConfigError`, () => {
    for (const nonsense of [
      "",
      " ",
      "(",
      "((",
      "))",
      "((),())",
      ",",
      "\u0000",
      "a b/c",
      "-1",
      "x".repeat(5000),
      "(".repeat(5000),
      "*".repeat(300),
    ])
      try {
        type.parse(nonsense, OPTIONS.plain as RuleOptions, SCOPE);
      } catch (error) {
        assert.ok(error instanceof ConfigError, `${nonsense.slice(0, 10)}: ${error}`);
        assert.ok(error.message.length < 2500);
      }
  });
}

test("what is not loaded matches nothing and needs nothing", () => {
  const empty: RuleScope = {
    ruleSet: () => null,
    geosite: () => null,
    geoip: () => null,
    asn: () => null,
    inboundTypes: inboundTypesOf(PROTOCOLS),
  };
  for (const [name, payload] of [
    ["RULE-SET", "x"],
    ["GEOSITE", "!x"],
    ["GEOIP", "!x"],
    ["IP-ASN", "1"],
  ]) {
    const type = RULE_TYPES.find((candidate) => candidate.type === name);
    assert.equal(
      type?.parse(payload as string, OPTIONS.plain as RuleOptions, empty).matcher.match({}),
      false,
    );
  }
});
