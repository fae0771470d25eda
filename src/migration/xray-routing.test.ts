import assert from "node:assert/strict";
import { test } from "node:test";
import { PROTOCOLS } from "#protocols/index.ts";
import { LeftOut } from "./imported.ts";
import { parseObject } from "./json.ts";
import { routingOf } from "./xray-routing.ts";

const OUTBOUNDS = [
  { tag: "out", protocol: "freedom" },
  { tag: "no", protocol: "blackhole" },
  { tag: "far", protocol: "trojan" },
];

function read(rules: readonly object[], more: object = {}) {
  const report = new LeftOut();
  const xray = { api: { tag: "api" }, outbounds: OUTBOUNDS, routing: { rules, ...more } };
  const found = routingOf(xray, "", { protocols: PROTOCOLS, report });
  const lines = report.lines.filter((line) => !line.startsWith("outbounds[2]"));
  return { rules: found.rules, lines };
}

const CASES: readonly (readonly [object, readonly string[]])[] = [
  [
    {
      domain: ["domain:a.example", "full:b.example", "word", "regexp:^x,y$", "geosite:cn"],
      outboundTag: "no",
    },
    [
      "DOMAIN-SUFFIX,a.example,REJECT",
      "DOMAIN,b.example,REJECT",
      "DOMAIN-KEYWORD,word,REJECT",
      "DOMAIN-REGEX,^x,y$,REJECT",
      "GEOSITE,cn,REJECT",
    ],
  ],
  [
    { ip: ["10.0.0.0/8", "::1", "geoip:private"], outboundTag: "no" },
    [
      "IP-CIDR,10.0.0.0/8,REJECT,no-resolve",
      "IP-CIDR6,::1/128,REJECT,no-resolve",
      "GEOIP,lan,REJECT,no-resolve",
    ],
  ],
  [{ type: "field", port: "53,1000-2000", outboundTag: "out" }, ["DST-PORT,53/1000-2000,DIRECT"]],
  [{ port: 25, user: ["a", "b"], outboundTag: "no" }, ["AND,((DST-PORT,25),(IN-USER,a/b)),REJECT"]],
  [
    { domain: ["full:a", "full:b"], network: "udp", outboundTag: "no" },
    ["AND,((OR,((DOMAIN,a),(DOMAIN,b))),(NETWORK,udp)),REJECT"],
  ],
  [{ source: "10.0.0.1", network: "tcp,udp", outboundTag: "out" }, ["SRC-IP-CIDR,10.0.0.1/32,DIRECT"]],
  [{ inboundTag: ["api"], outboundTag: "api" }, []],
];

test("rules of Xray are said in our words", () => {
  for (const [rule, lines] of CASES) {
    const found = read([rule]);
    assert.deepEqual(found, { rules: [...lines, "MATCH,DIRECT"], lines: [] });
  }
  assert.deepEqual(read([{ ip: ["1.1.1.1"], outboundTag: "no" }], { domainStrategy: "IPOnDemand" }).rules, [
    "IP-CIDR,1.1.1.1/32,REJECT",
    "MATCH,DIRECT",
  ]);
});

test("what would leave by an outbound that is not taken is refused, and said", () => {
  const { rules, lines } = read([
    { domain: ["full:a"], outboundTag: "far" },
    { domain: ["full:b"], outboundTag: "gone" },
  ]);
  assert.deepEqual(rules, ["DOMAIN,a,REJECT", "DOMAIN,b,REJECT", "MATCH,DIRECT"]);
  assert.deepEqual(lines, ["routing.rules[1]: its outbound is not there; what it matches is refused"]);
  const report = new LeftOut();
  const relay = { outbounds: [{ protocol: "trojan" }] };
  assert.deepEqual(routingOf(relay, "", { protocols: PROTOCOLS, report }).rules, ["MATCH,REJECT"]);
  assert.equal(report.lines.length, 1);
});

test("a member without an equal costs its rule and is named", () => {
  const refused = [
    { protocol: ["bittorrent"] },
    { attrs: { a: "b" } },
    { domain: ["ext:file:tag"] },
    { ip: ["geoip:!cn"] },
    { user: ["regexp:x"] },
    { port: "env:PORT" },
  ];
  for (const rule of refused) {
    const { rules, lines } = read([{ ...rule, outboundTag: "no" }]);
    assert.deepEqual(rules, ["MATCH,DIRECT"]);
    assert.deepEqual(lines, [
      `routing.rules[0].${Object.keys(rule)[0]}: cannot be said here; the rule is left out`,
    ]);
  }
});

test("comments are read over, and stay where they are text", () => {
  const text = '{ // one\n "a": "http://x/*y*/ # z", /* two */ "b": 1 # three\n}';
  assert.deepEqual(parseObject(text, "file"), { a: "http://x/*y*/ # z", b: 1 });
  for (let end = 0; end < text.length; end++)
    assert.throws(() => parseObject(text.slice(0, end), "file"), /file: it is no JSON/);
  assert.throws(() => parseObject(`"${'\\"'.repeat(1_000_000)}`, "file"), /file: it is no JSON/); // quadratic work would not end
});
