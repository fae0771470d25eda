import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleScope } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { atOnce } from "#lib/steps.ts";
import { conditionsInSteps } from "./condition-list.ts";

const NOTHING: RuleScope = {
  ruleSet: () => null,
  geosite: () => null,
  geoip: () => null,
  asn: () => null,
  inboundTypes: new Set<string>(),
};

test("one condition is enough; what is not known leaves it open only where it matters", () => {
  const skipped: string[] = [];
  const many = Array.from({ length: 8 }, (_, at) => `DOMAIN-SUFFIX,s${at}.example`); // enough to share a table
  const list = atOnce(
    conditionsInSteps(
      [
        ...many,
        "DOMAIN-REGEX,^a{1,2}\\.example$",
        "IP-CIDR,10.0.0.0/8,no-resolve",
        "IP-CIDR6,2001:db8::/32",
        "AND,((DST-PORT,53),(NETWORK,udp))",
        "MATCH",
        "MATCH,x",
        "RULE-SET,other",
        "AND,((RULE-SET,other),(NETWORK,udp))",
        "SUB-RULE,(NETWORK,udp),x",
        "NONSENSE,x",
        "IP-CIDR,nonsense",
      ],
      NOTHING,
      (line) => skipped.push(line),
    ),
  );
  assert.equal(list.size, 12);
  assert.equal(skipped.length, 7);
  assert.deepEqual(new Set(list.reads), new Set(["host", "ip", "port", "network"]));
  assert.equal(list.match({ host: "x.s3.example" }), true);
  assert.equal(list.match({ host: "aa.example" }), true);
  assert.equal(list.match({ host: "other.example" }), undefined);
  assert.equal(list.match({ host: null, ip: "10.1.1.1" as Ip }), true);
  const known = { host: "other.example", port: 53, network: "udp" } as const;
  assert.equal(list.match(known), true);
  assert.equal(list.match({ ...known, network: "tcp" }), undefined, "the address would be needed");
  assert.equal(list.match({ ...known, network: "tcp", ip: "192.0.2.1" as Ip }), false);
});

test("no-resolve inside a list does not ask for the address", () => {
  const list = atOnce(conditionsInSteps(["IP-CIDR,10.0.0.0/8,no-resolve"], NOTHING, assert.fail));
  assert.equal(list.match({ host: "a.example" }), false);
});
