import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultId, ruleSignature } from "./signature.ts";

const video = "5dafbc905e90af1fedbfeb83e063ace5dc7948d6f4d4bf44da8a3fc8c3e1aaeb";

test("the signatures of the specification", () => {
  assert.equal(ruleSignature({ type: "DOMAIN-SUFFIX", payload: "example.video", target: "Proxy" }), video);
  assert.equal(
    ruleSignature({ type: "MATCH", payload: "", target: "DIRECT" }),
    "51e1031b4b1bd80ef2d6522605099f8483da016d3da869ac9783b5e5400798d1",
  );
  assert.equal(defaultId("target", ["group", "Proxy"]), "target-f02888f89171a5da");
});

test("spelling does not change a signature", () => {
  for (const type of ["DomainSuffix", "domain_suffix", " domain suffix "])
    assert.equal(ruleSignature({ type, payload: " Example.VIDEO ", target: " Proxy " }), video);
});

const same = (
  a: readonly [string, string],
  b: readonly [string, string],
  target = "P",
): readonly [string, string] => [
  ruleSignature({ type: a[0], payload: a[1], target }),
  ruleSignature({ type: b[0], payload: b[1], target }),
];

test("two names of one type, host bits, zeros and punycode are one signature", () => {
  for (const [a, b] of [
    same(["IP-CIDR6", "2001:DB8::1/32"], ["IP-CIDR", "2001:db8::/32"]),
    same(["SUB-RULE", "x"], ["SubRules", "x"]),
    same(["DST-PORT", "0080"], ["DstPort", "80"]),
    same(["DOMAIN", "KÖLN.example"], ["Domain", "xn--kln-sna.example"]),
    same(["AND", "((A,b)   && (C,d))"], ["AND", "((A,b) && (C,d))"]),
  ])
    assert.equal(a, b);
});

test("what the rule says changes it; the target's case counts", () => {
  const rule = { type: "DOMAIN", payload: "a.example", target: "P" };
  const all = [
    rule,
    { ...rule, payload: "b.example" },
    { ...rule, target: "p" },
    { ...rule, type: "GEOSITE" },
  ];
  assert.equal(new Set(all.map(ruleSignature)).size, all.length);
});
