import assert from "node:assert/strict";
import { test } from "node:test";
import { PROTOCOLS } from "#protocols/index.ts";
import { LeftOut } from "./imported.ts";
import { secondsOf } from "./sing-box-outbound.ts";
import { readSingBox } from "./sing-box.ts";

function read(box: object) {
  const report = new LeftOut();
  const imported = readSingBox({ ...box }, { protocols: PROTOCOLS, report, nowMs: 1 });
  return { ...imported, keys: imported.keys ?? {}, lines: report.lines };
}

const VLESS = { type: "vless", tag: "a", server: "h.example", server_port: 443, uuid: "u" };
const OUTBOUNDS = [{ type: "direct", tag: "direct" }, { type: "block", tag: "block" }, VLESS];

test("outbounds are nodes and groups; what is not spoken is refused, and groups do without it", () => {
  const { keys, lines, rules } = read({
    outbounds: [
      {
        ...VLESS,
        flow: "xtls-rprx-vision",
        tls: {
          enabled: true,
          server_name: "s.example",
          utls: { enabled: true, fingerprint: "firefox" },
          reality: { enabled: true, public_key: "KEY", short_id: "ab" },
        },
      },
      {
        type: "trojan",
        tag: "b,c",
        server: "t.example",
        server_port: 443,
        password: "p",
        detour: "a",
        transport: { type: "ws", path: "/w", headers: { Host: "cdn.example" } },
        tls: { enabled: true, insecure: true },
      },
      { type: "ssh", tag: "far", server: "h", server_port: 22 },
      { type: "selector", tag: "pick", outbounds: ["far", "b,c", "a"], default: "a" },
      { type: "urltest", tag: "none", outbounds: ["far"], interval: "1m30s" },
    ],
    route: { final: "pick" },
  });
  assert.deepEqual(keys["proxies"], [
    {
      name: "a",
      type: "vless",
      server: "h.example",
      port: 443,
      uuid: "u",
      udp: true,
      flow: "xtls-rprx-vision",
      tls: true,
      servername: "s.example",
      "client-fingerprint": "firefox",
      "reality-opts": { "public-key": "KEY", "short-id": "ab" },
    },
    {
      name: "b_c",
      type: "trojan",
      server: "t.example",
      port: 443,
      password: "p",
      udp: true,
      network: "ws",
      "ws-opts": { path: "/w", headers: { Host: "cdn.example" } },
      "skip-cert-verify": true,
      "dialer-proxy": "a",
    },
  ]);
  assert.deepEqual(keys["proxy-groups"], [{ name: "pick", type: "select", proxies: ["a", "b_c"] }]);
  assert.deepEqual(rules, ["MATCH,pick"]);
  assert.deepEqual(lines, [
    "outbounds[1]: it is called b_c",
    "outbounds[2]: ssh is not taken (there is no such node); what would leave by it is refused",
    "outbounds[4]: none of its outbounds is taken; what would leave by it is refused",
    "outbounds[3].outbounds: 1 of them are not taken",
  ]);
  assert.equal(secondsOf("1m30s"), 90);
});

const CASES: readonly (readonly [object, readonly string[]])[] = [
  [
    { domain_suffix: [".a.example"], domain: "b.example", outbound: "direct" },
    ["DOMAIN-SUFFIX,a.example,DIRECT", "DOMAIN,b.example,DIRECT"],
  ],
  [{ ip_is_private: true, outbound: "direct" }, ["GEOIP,lan,DIRECT,no-resolve"]],
  [{ domain_keyword: "x", port: [80, 443], outbound: "a" }, ["AND,((DOMAIN-KEYWORD,x),(DST-PORT,80/443)),a"]],
  [
    { domain_suffix: "x", ip_cidr: "10.0.0.0/8", network: "udp", outbound: "block" },
    ["AND,((OR,((DOMAIN-SUFFIX,x),(IP-CIDR,10.0.0.0/8,no-resolve))),(NETWORK,udp)),REJECT"],
  ],
  [{ port_range: ["1000:2000", ":10"], action: "reject" }, ["DST-PORT,1000-2000/0-10,REJECT"]],
  [{ domain: "x", invert: true, outbound: "a" }, ["NOT,((DOMAIN,x)),a"]],
  [
    {
      type: "logical",
      mode: "or",
      rules: [{ domain: "x" }, { port: 25, network: "tcp" }],
      action: "reject",
      method: "drop",
    },
    ["DOMAIN,x,REJECT-DROP", "AND,((DST-PORT,25),(NETWORK,tcp)),REJECT-DROP"],
  ],
  [{ rule_set: "geosite-cn", outbound: "direct" }, ["GEOSITE,cn,DIRECT"]],
  [
    { rule_set: ["own"], auth_user: ["u"], outbound: "a" },
    ["AND,((OR,((DOMAIN,i),(DOMAIN,j))),(IN-USER,u)),a"],
  ],
  [{ source_mac_address: "aa:bb:cc:dd:ee:ff", outbound: "a" }, ["SRC-MAC,aa:bb:cc:dd:ee:ff,a"]],
];
const SETS = [
  { type: "remote", tag: "geosite-cn", url: "https://x.example/rule-set/geosite-cn.srs" },
  { type: "inline", tag: "own", rules: [{ domain: ["i", "j"] }] },
  { type: "remote", tag: "other", url: "https://x.example/other.srs" },
];

test("rules of sing-box are said in our words", () => {
  for (const [rule, lines] of CASES) {
    const found = read({ outbounds: OUTBOUNDS, route: { rules: [rule], rule_set: SETS } });
    assert.deepEqual([found.rules, found.lines], [[...lines, "MATCH,DIRECT"], []], JSON.stringify(rule));
  }
  const resolved = [{ action: "sniff" }, { action: "resolve" }, { ip_cidr: "1.1.1.1", outbound: "block" }];
  const { rules, keys } = read({ outbounds: OUTBOUNDS, route: { rules: resolved } });
  assert.deepEqual(rules, ["IP-CIDR,1.1.1.1/32,REJECT", "MATCH,DIRECT"]);
  assert.deepEqual(Object.keys(keys), ["sniffer", "proxies"]);
});

test("a member without an equal costs its rule and is named", () => {
  for (const rule of [
    { protocol: "bittorrent" },
    { clash_mode: "x" },
    { rule_set: "other" },
    { port_range: "x" },
  ]) {
    const { rules, lines } = read({
      outbounds: OUTBOUNDS,
      route: { rules: [{ ...rule, outbound: "a" }], rule_set: SETS },
    });
    assert.deepEqual(rules, ["MATCH,DIRECT"]);
    assert.deepEqual(lines, [
      `route.rules[0]: ${Object.keys(rule)[0]} cannot be said here; the rule is left out`,
    ]);
  }
});

test("DNS: servers of both forms, which names go to which, and fake addresses", () => {
  const { keys, lines } = read({
    outbounds: OUTBOUNDS,
    dns: {
      servers: [
        { tag: "far", type: "https", server: "1.1.1.1", detour: "a" },
        { tag: "near", address: "tls://dns.example" },
        { tag: "fake", type: "fakeip", inet4_range: "198.18.0.0/15" },
      ],
      rules: [
        { domain_suffix: ["x.example"], server: "near" },
        { query_type: ["A"], server: "fake" },
        { query_type: ["MX"], domain: "y", server: "near" },
      ],
      final: "far",
      strategy: "ipv4_only",
    },
  });
  assert.deepEqual(keys["dns"], {
    enable: true,
    nameserver: ["https://1.1.1.1/dns-query#a"],
    "default-nameserver": ["system"],
    "nameserver-policy": { "+.x.example": "tls://dns.example" },
    "enhanced-mode": "fake-ip",
    "fake-ip-range": "198.18.0.0/15",
    ipv6: false,
  });
  assert.deepEqual(lines, [
    "dns.rules[2]: only which nameserver is asked for which names can be said here; it is left out",
  ]);
});
