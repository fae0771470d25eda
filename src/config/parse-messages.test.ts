/** configuration.md 17.3: every kind of message, by a bad sample each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorsOf, group, proxy, socks } from "../../test/support/config-texts.ts";

/** Per area of configuration.md 1.5: a bad sample and what must stand in the message. */
const PREFIXES: readonly (readonly [area: string, text: string, message: RegExp])[] = [
  ["yaml syntax", "a: [1\n", /yaml: line 2: /],
  ["yaml type", "mixed-port: many\n", /^1:13 mixed-port: yaml: line 1: expected an integer, got many/],
  [
    "yaml duplicate",
    "mode: rule\nmode: rule\n",
    /^2:1 mode: yaml: line 2: mapping key "mode" already defined/,
  ],
  ["mode", "mode: gobal\n", /expected one of rule, global, direct, got gobal; did you mean "global"\?/],
  [
    "proxy index",
    proxy("name: a, type: sokcs5"),
    /^2:21 proxies\[0\]\.type: proxy 0: unsupport proxy type: sokcs5; did you mean "socks5"\?/,
  ],
  ["proxy unset", proxy("name: a, type: vless"), /proxy 0: '' has unset fields: port, server, uuid/],
  [
    "proxy unset inside",
    proxy("name: a, type: vless, server: s, port: 1, uuid: u, reality-opts: {}"),
    /proxy 0: 'reality-opts' has unset fields: public-key/,
  ],
  [
    "proxy value",
    proxy(`name: a, ${socks}, udp: "true"`),
    /proxy 0: 'udp' expected true or false, got "true"/,
  ],
  ["proxy no type", proxy("name: a"), /proxy 0: '' has unset fields: type/],
  [
    "proxy duplicate",
    `proxies:\n  - {name: a, ${socks}}\n  - {name: a, ${socks}}\n`,
    /^3:12 proxies\[1\]\.name: proxy a is the duplicate name/,
  ],
  ["group name", group("type: select, proxies: [DIRECT]"), /proxy group 0: missing name/],
  [
    "group member",
    group("name: g, type: select, proxies: [DIRCT]"),
    /proxy group\[0\]: g: 'DIRCT' not found; did you mean "DIRECT"\?/,
  ],
  ["group empty", group("name: g, type: select"), /proxy group\[0\]: g: 'use' or 'proxies' missing/],
  [
    "group type",
    group("name: g, type: selector, proxies: [DIRECT]"),
    /proxy group\[0\]: g: unsupported group type: selector; .*"select"/,
  ],
  [
    "group fallback",
    group("name: g, type: select, proxies: [DIRECT], empty-fallback: g"),
    /proxy group\[0\]: g: empty-fallback 'g' must be a proxy/,
  ],
  [
    "group provider",
    `proxy-providers: {g: {type: file, path: x}}\n${group("name: g, type: select, proxies: [DIRECT]")}`,
    /proxy group\[0\]: g: a proxy-provider has the same name/,
  ],
  [
    "group duplicate",
    "proxy-groups:\n  - {name: g, type: select, proxies: [DIRECT]}\n  - {name: g, type: select, proxies: [DIRECT]}\n",
    /ProxyGroup g: duplicate group name/,
  ],
  [
    "group loop",
    "proxy-groups:\n  - {name: a, type: select, proxies: [b]}\n  - {name: b, type: select, proxies: [c]}\n  - {name: c, type: select, proxies: [a]}\n",
    /loop is detected in ProxyGroup.*a -> b -> c -> a/,
  ],
  [
    "provider",
    "proxy-providers: {p: {type: htpp}}\n",
    /parse proxy provider p error: 'type' expected one of http, file, inline, got htpp; did you mean "http"\?/,
  ],
  [
    "provider default",
    "proxy-providers: {default: {type: file, path: x}}\n",
    /parse proxy provider default error: /,
  ],
  [
    "provider path",
    "proxy-providers: {p: {type: file, path: /etc/x}}\n",
    /parse proxy provider p error: path \/etc\/x is not safe/,
  ],
  [
    "provider filter",
    'proxy-providers: {p: {type: file, path: x, filter: "a`("}}\n',
    /parse proxy provider p error: 'filter' "\(" is not a regular expression/,
  ],
  [
    "provider override",
    "proxy-providers: {p: {type: file, path: x, override: {udp: maybe}}}\n",
    /parse proxy provider p error: 'override\.udp' expected true or false/,
  ],
  [
    "rule provider",
    "rule-providers: {r: {type: inline, behavior: domains, payload: [a]}}\n",
    /parse rule provider r error: 'behavior' expected one of domain/,
  ],
  [
    "rule target",
    "rules: ['DOMAIN,a.com,DIRCT']\n",
    /^1:9 rules\[0\]: rules\[0\] \[DOMAIN,a\.com,DIRCT\] error: proxy \[DIRCT\] not found; did you mean "DIRECT"\?/,
  ],
  ["rule format", "rules: [foo]\n", /rules\[0\] \[foo\] error: format invalid/],
  [
    "rule type",
    "rules: ['DOMAN,a,DIRECT']\n",
    /rules\[0\] \[DOMAN,a,DIRECT\] error: unsupported rule type: DOMAN; did you mean "DOMAIN"\?/,
  ],
  [
    "rule payload",
    "rules: ['IP-CIDR,1.2.3,DIRECT']\n",
    /rules\[0\] \[IP-CIDR,1\.2\.3,DIRECT\] error: expected a CIDR/,
  ],
  [
    "rule set",
    "rules: ['RULE-SET,x,DIRECT']\n",
    /rules\[0\] \[RULE-SET,x,DIRECT\] error: rule-set "x" not found/,
  ],
  [
    "rule set inside",
    "rules: ['NOT,((RULE-SET,x)),DIRECT']\n",
    /rules\[0\] \[NOT,\(\(RULE-SET,x\)\),DIRECT\] error: rule-set "x" not found/,
  ],
  [
    "sub-rule",
    "rules: ['SUB-RULE,(DOMAIN,a),x']\n",
    /rules\[0\] \[SUB-RULE,\(DOMAIN,a\),x\] error: sub-rule \[x\] not found/,
  ],
  [
    "sub-rules",
    "sub-rules: {s: ['DOMAIN,a,x']}\n",
    /sub-rules\[s\]\[0\] \[DOMAIN,a,x\] error: proxy \[x\] not found/,
  ],
  [
    "sub-rules circle",
    "sub-rules: {a: ['SUB-RULE,(x),b'], b: ['SUB-RULE,(x),a']}\n",
    /circular references \[a->b->a\]/,
  ],
  [
    "listener",
    "listeners: [{name: l, type: sock}]\n",
    /listener 0: unsupport listener type: sock; did you mean "socks"\?/,
  ],
  [
    "listener ports",
    "listeners: [{name: l, type: socks, port: 1-99999}]\n",
    /listener 0: 'port' expected numbers or ranges/,
  ],
  [
    "listener address",
    "listeners: [{name: l, type: socks, listen: localhost}]\n",
    /listener 0: 'listen' expected an IP address/,
  ],
  [
    "dns",
    "dns: {nameserver: [1.1.1.1, 'htps://x']}\n",
    /DNS NameServer\[1\] of nameserver: unknown DNS scheme "htps".*did you mean "https"/,
  ],
  [
    "dns server behind a double",
    "dns: {default-nameserver: [8.8.8.8, 8.8.8.8, dns.google]}\n",
    /^1:46 dns\.default-nameserver\[2\]: DNS NameServer\[2\] of default-nameserver: should be an IP address/,
  ],
  ["tunnel proxy", "tunnels: ['tcp,127.0.0.1:1,x:1,absent']\n", /tunnel proxy absent not found/],
  [
    "tunnel network",
    "tunnels: ['tpc,127.0.0.1:1,x:1']\n",
    /expected one of tcp, udp, tcp\/udp, udp\/tcp, got "tpc"; did you mean "tcp"\?/,
  ],
  [
    "rcode",
    "dns: {nameserver: ['rcode://sucess']}\n",
    /^1:\d+ dns\.nameserver\[0\]: .*unknown rcode "sucess".*did you mean "success"\?/,
  ],
  [
    "fake-ip-filter type",
    "dns: {fake-ip-filter-mode: rule, fake-ip-filter: ['DOMAIN-SUFIX,a,real-ip']}\n",
    /^1:\d+ dns\.fake-ip-filter\[0\]: .*did you mean "DOMAIN-SUFFIX"\?$/,
  ],
  [
    "fake-ip-filter action",
    "dns: {fake-ip-filter-mode: rule, fake-ip-filter: ['DOMAIN,a,real-pi']}\n",
    /^1:\d+ dns\.fake-ip-filter\[0\]: .*must end in fake-ip or real-ip; did you mean "real-ip"\?$/,
  ],
  [
    "provider payload",
    "proxy-providers: {p: {type: inline, payload: []}}\n",
    /^1:46 proxy-providers\.p\.payload: .* 'payload' needs at least one item for type inline$/,
  ],
  ["empty item", "proxies:\n  -\n", /proxy 0: expected a map, got nothing$/],
  ["rule of others", "rules: ['FINAL,DIRECT']\n", /unsupported rule type: FINAL; MATCH is meant here$/],
  [
    "rule short and unknown",
    "rules: ['MATHC,DIRECT']\n",
    /unsupported rule type: MATHC; did you mean "MATCH"\?$/,
  ],
  ["hosts circle", "hosts: {a.com: b.com, b.com: a.com}\n", /cycle in domain mapping a\.com->b\.com->a\.com/],
  ["sniffer", "sniffer: {sniff: {TSL: {}}}\n", /unknown sniffer protocol "TSL".*did you mean "TLS"/],
];

for (const [area, text, message] of PREFIXES)
  test(`configuration.md 17.3: ${area}`, () => {
    const errors = errorsOf(text);
    assert.ok(
      errors.some((error) => message.test(error)),
      `${errors.join("\n")}\ndoes not match ${message}`,
    );
  });

test("configuration.md 17.3: every error of the file at once, in the order of the lines", () => {
  const text = `mode: x\n${proxy("name: a, type: nothing-known")}rules: ['DOMAIN,a,b', 'foo']\ntun: {stack: none}\n`;
  assert.deepEqual(
    errorsOf(text).map((error) => error.split(":")[0]),
    ["1", "3", "4", "4", "5"],
  );
});
