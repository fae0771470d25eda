import assert from "node:assert/strict";
import { test } from "node:test";
import { GOOD_CONFIG } from "../../test/support/broken-configs.ts";
import { testEnv } from "../../test/support/config-env.ts";
import type { Config } from "./config.ts";
import { parseConfig } from "./parse.ts";
import { formatDiagnostic } from "./report.ts";

function good(text: string): Config {
  const { config, errors } = parseConfig(text, testEnv());
  assert.deepEqual(errors?.map((error) => formatDiagnostic("c.yaml", error)) ?? [], []);
  return config as Config;
}

/** `line:column path: message` of every error. */
function errorsOf(text: string): readonly string[] {
  return (parseConfig(text, testEnv()).errors ?? []).map((error) => formatDiagnostic("c", error).slice(2));
}

function warningsOf(text: string): readonly string[] {
  return parseConfig(text, testEnv()).warnings.map((warning) => formatDiagnostic("c", warning).slice(2));
}

test("configuration.md 17.1: a profile of only mixed-port has every default", () => {
  const config = good("mixed-port: 7890\n");
  const { general } = config;
  assert.deepEqual(
    [general.port, general.socksPort, general.redirPort, general.tproxyPort, general.mixedPort],
    [0, 0, 0, 0, 7890],
  );
  assert.deepEqual(
    [config.mode, config.logLevel, general.allowLan, general.bindAddress],
    ["rule", "info", false, "*"],
  );
  assert.deepEqual(
    [general.ipv6, general.findProcessMode, general.globalUa],
    [true, "strict", "clash.meta/test"],
  );
  assert.deepEqual(
    [general.keepAlive, general.etagSupport],
    [{ disabled: false, idleMs: 0, intervalMs: 0 }, true],
  );
  assert.deepEqual([config.accounts, config.skipAuthPrefixes, config.lanAllowedIps.length], [[], [], 2]);
  const { geodata } = config;
  assert.deepEqual(
    [
      geodata.geodataMode,
      geodata.geodataLoader,
      geodata.geositeMatcher,
      geodata.geoAutoUpdate,
      geodata.geoUpdateInterval,
    ],
    [false, "memconservative", "succinct", false, 24],
  );
  assert.match(geodata.geoxUrl.mmdb, /^https:.*geoip\.metadb$/);
  const { controller } = config;
  assert.deepEqual([controller.externalController, controller.secret], ["", ""]);
  assert.deepEqual(controller.externalControllerCors, { allowOrigins: ["*"], allowPrivateNetwork: true });
  const { tun, dns } = config;
  assert.deepEqual(
    [tun.enable, tun.stack, tun.mtu, tun.autoRoute, tun.autoDetectInterface],
    [false, "gvisor", 9000, true, true],
  );
  assert.deepEqual(
    [tun.inet4Address, tun.dnsHijack],
    [[{ ip: "198.18.0.1", bits: 30 }], [{ host: "0.0.0.0", port: 53 }]],
  );
  assert.deepEqual([tun.inet6Address, tun.udpTimeout], [[{ ip: "fdfe:dcba:9876::1", bits: 126 }], 300]);
  assert.deepEqual([tun.kernelDirectMaxEntries, tun.kernelDirectEbpfMark], [4096, 0x4000_0000]);
  assert.deepEqual(
    [dns.enable, dns.enhancedMode, dns.listen, dns.fakeIpTtlSeconds],
    [false, "redir-host", null, 1],
  );
  assert.deepEqual(
    dns.nameserver.map(({ scheme, host, port }) => [scheme, host, port]),
    [
      ["https", "doh.pub", 443],
      ["tls", "223.5.5.5", 853],
    ],
  );
  assert.equal(dns.defaultNameserver.length, 4);
  assert.deepEqual([config.profile.storeSelected, config.profile.storeFakeIp], [true, false]);
  assert.deepEqual([config.svc, config.trafficControl], [null, null]);
  assert.deepEqual(config.hosts, [
    { pattern: "localhost", value: { kind: "addresses", addresses: ["127.0.0.1"] } },
  ]);
  assert.deepEqual(
    config.listeners.map(({ name, protocol, hosts, ports, options }) => [
      name,
      protocol.type,
      hosts,
      ports,
      options,
    ]),
    [["DEFAULT-MIXED", "mixed", ["127.0.0.1"], [7890], { udp: true }]],
  );
  assert.ok(Object.isFrozen(config) && Object.isFrozen(config.dns.nameserver[0]));
});

test("an empty document has the defaults, an empty file is an error", () => {
  assert.deepEqual(good("# nothing\n").listeners, []);
  assert.match(
    errorsOf("  \n")[0] as string,
    /^1:1 \(document\): yaml: line 1: the configuration file is empty/,
  );
});

test("configuration.md 17.2: spellings of keys, numbers as they are written, helper keys", () => {
  const text = `
p: &p {udp: true, skip_cert_verify: true}
rule-anchor:
  inner: &list [DIRECT]
proxies:
  - {<<: *p, NAME: a, type: vless, Server: s.example, PORT: 0x50, uuid: 0123, Reality_Opts: {public_key: 1e5, short-id: 00112233}}
  - {name: 7, type: socks5, server: 192.0.2.1, port: "1080", password: 000123456789012345678901, username: ~}
proxy-groups:
  - {Name: g, TYPE: select, Proxies: *list}
listeners:
  - {name: l, type: socks, PORT: 1000-1002/2000, Routing_Mark: 0x10}
`;
  const config = good(text);
  assert.deepEqual(config.warnings, []);
  const [vless, socks] = config.proxies;
  assert.equal(vless?.udp, true);
  assert.deepEqual(vless?.options, {
    server: "s.example",
    port: 80,
    uuid: "0123",
    network: "tcp",
    "ws-opts": null,
    "reality-opts": { "public-key": "1e5", "short-id": "00112233" },
    sni: "",
    alpn: [],
    "skip-cert-verify": true,
    certificate: "",
  });
  assert.equal(socks?.name, "7");
  assert.deepEqual((socks as { options: { password: string } }).options.password, "000123456789012345678901");
  assert.deepEqual(config.groups[0]?.members, ["DIRECT"]);
  assert.deepEqual(config.listeners[0]?.ports, [1000, 1001, 1002, 2000]);
  assert.equal(config.listeners[0]?.routingMark, 16);
});

test("configuration.md 17.2: an unknown top-level key is a warning, one that holds an anchor is silent", () => {
  assert.deepEqual(warningsOf("modee: rule\nhelper: &x {a: b}\ndeep: {er: [&y 1]}\n"), [
    '1:1 modee: unknown key "modee"; did you mean "mode"?',
  ]);
  assert.deepEqual(warningsOf("dns:\n  enabel: true\n"), [
    '2:3 dns.enabel: unknown key "enabel"; did you mean "enable"?',
  ]);
});

const proxy = (fields: string) => `proxies:\n  - {${fields}}\n`;
const socks = "type: socks5, server: s, port: 1";
const group = (fields: string) => `proxy-groups:\n  - {${fields}}\n`;

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
  ["group relay", group("name: g, type: relay, proxies: [DIRECT]"), /dialer-proxy/],
  [
    "group status",
    group("name: g, type: select, proxies: [DIRECT], expected-status: ok"),
    /proxy group\[0\]: g: 'expected-status' expected numbers or ranges/,
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
    "provider node",
    "proxy-providers: {p: {type: inline, payload: [{name: a, type: socks5, port: 1}]}}\n",
    /parse proxy provider p error: proxy 0: '' has unset fields: server/,
  ],
  [
    "rule provider",
    "rule-providers: {r: {type: inline, behavior: domains, payload: [a]}}\n",
    /parse rule provider r error: 'behavior' expected one of domain/,
  ],
  [
    "rule provider url",
    "rule-providers: {r: {type: http, behavior: domain}}\n",
    /parse rule provider r error: '' has unset fields: url/,
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
    "listener duplicate",
    "listeners: [{name: l, type: socks}, {name: l, type: http}]\n",
    /listener l is the duplicate name/,
  ],
  ["dialer", proxy(`name: a, ${socks}, dialer-proxy: b`), /proxy a: dialer-proxy b not found/],
  [
    "dialer circle",
    `proxies:\n  - {name: a, ${socks}, dialer-proxy: b}\n  - {name: b, ${socks}, dialer-proxy: a}\n`,
    /proxy a: circular dialer-proxy: a -> b -> a/,
  ],
  [
    "dns",
    "dns: {nameserver: [1.1.1.1, 'htps://x']}\n",
    /DNS NameServer\[1\] of nameserver: unknown DNS scheme "htps".*did you mean "https"/,
  ],
  ["tunnel proxy", "tunnels: ['tcp,127.0.0.1:1,x:1,nobody']\n", /tunnel proxy nobody not found/],
  ["tunnel network", "tunnels: ['icmp,127.0.0.1:1,x:1']\n", /expected tcp, udp or tcp\/udp, got "icmp"/],
  ["hosts", "hosts: {a: [1.1.1.1, b.com]}\n", /hosts "a": a list holds only IP addresses/],
  ["hosts circle", "hosts: {a.com: b.com, b.com: a.com}\n", /cycle in domain mapping a\.com->b\.com->a\.com/],
  ["sniffer", "sniffer: {sniff: {TSL: {}}}\n", /unknown sniffer protocol "TSL".*did you mean "TLS"/],
  ["sniffer domain", "sniffer: {force-domain: ['a..b']}\n", /bad domain pattern: "a\.\.b"/],
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

test("configuration.md 17.3: the good file has neither errors nor warnings", () => {
  assert.deepEqual(warningsOf(GOOD_CONFIG), []);
  const config = good(GOOD_CONFIG);
  assert.deepEqual(
    config.rules.map(({ type, payload, target }) => [type.type, payload, target]),
    [
      ["RULE-SET", "ads", "REJECT"],
      ["DOMAIN-SUFFIX", "example.org", "Main"],
      ["DOMAIN", "www.example.com", "Auto"],
      ["IP-CIDR", "10.0.0.0/8", "DIRECT"],
      ["AND", "((DOMAIN,a.example),(DOMAIN-SUFFIX,example))", "third"],
      ["SUB-RULE", "(DOMAIN-SUFFIX,lan)", "inner"],
      ["MATCH", "", "Main"],
    ],
  );
  assert.deepEqual(config.rules[3]?.options, { noResolve: true, source: false });
  assert.deepEqual(config.tunnels, [
    {
      networks: ["tcp", "udp"],
      listen: { ip: "127.0.0.1", port: 6553 },
      target: { host: "8.8.8.8", port: 53 },
      proxy: "Main",
    },
  ]);
});

test("what this build does not speak costs a warning, not the file", () => {
  const text = `tproxy-port: 1\n${proxy("name: w, type: wireguard, private-key: x")}listeners: [{name: t, type: tuic, users: {a: b}}]\nrules: ['GEOIP,CN,w', 'MATCH,w']\n`;
  const config = good(text);
  assert.deepEqual([config.proxies[0]?.type, config.proxies[0]?.protocol], ["wireguard", null]);
  assert.deepEqual([config.listeners, config.rules.length], [[], 1]);
  assert.deepEqual(warningsOf(text), [
    "1:14 tproxy-port: tproxy-port: the protocol tproxy is not in this build; the port is left closed",
    "3:21 proxies[0].type: proxy 0: w: type wireguard is not in this build; the node stays and cannot be dialled",
    "4:29 listeners[0].type: listener 0: type tuic is not in this build; the listener is left out",
    "5:9 rules[0]: rules[0] [GEOIP,CN,w] warning: the type GEOIP is not in this build; the rule is left out",
  ]);
});

test("where the top-level ports listen", () => {
  const hosts = (text: string) => good(`port: 1\n${text}`).listeners[0]?.hosts;
  assert.deepEqual(hosts("bind-address: 192.0.2.1\n"), ["127.0.0.1"]);
  assert.deepEqual(hosts("allow-lan: true\n"), ["::"]);
  assert.deepEqual(hosts("allow-lan: true\nbind-address: 192.0.2.1\n"), ["192.0.2.1"]);
  assert.deepEqual(hosts("allow-lan: true\nbind-address: '2001:db8::1'\n"), ["2001:db8::1"]);
});

test("groups: providers and proxies that are included come sorted", () => {
  const text = `proxies:\n  - {name: é, ${socks}}\n  - {name: z, ${socks}}\n  - {name: A, ${socks}}
proxy-providers: {q: {type: file, path: q}, p: {type: file, path: p}}
proxy-groups:
  - {name: all, type: url-test, proxies: [z], include-all: true, filter: "(?i)a\`z", exclude-type: "Vless | Direct", interface-name: eth0}
  - {name: s, type: select, use: [p], hidden: yes, icon: x}
`;
  const [all, select] = good(text).groups;
  assert.deepEqual(
    [all?.members, all?.settings?.included, all?.settings?.use],
    [["z"], ["A", "z", "é"], ["p", "q"]],
  );
  assert.deepEqual([all?.settings?.intervalSeconds, all?.settings?.excludeTypes], [300, ["vless", "direct"]]);
  assert.deepEqual(
    [select?.settings?.intervalSeconds, select?.settings?.hidden, select?.settings?.icon],
    [0, true, "x"],
  );
  assert.deepEqual(warningsOf(text).length, 1);
});

test("lines of rules", () => {
  const { rules } = good(
    `rules:\n  - " domain-regex, ^a{1,3}\\\\.com$ , DIRECT "\n  - ip-cidr,1.0.0.0/8,DIRECT,SRC\n  - match,DIRECT,x\n`,
  );
  assert.deepEqual(rules[0]?.payload, "^a{1,3}\\.com$");
  assert.deepEqual(rules[1]?.options, { noResolve: true, source: true });
  assert.deepEqual(rules[2]?.target, "DIRECT");
});

test("general ipv6 masks what depends on it, and what was written is kept", () => {
  const config = good("ipv6: false\ndns: {ipv6: true, fake-ip-range6: 'fd00::1/64'}\n");
  assert.deepEqual([config.dns.ipv6, config.dns.fakeIpRange6, config.tun.inet6Address], [false, null, []]);
  assert.deepEqual([config.written.dns.ipv6, config.written.tun.inet6Address.length], [true, 1]);
});

test("files are checked where they are named, PEM text is not a file", () => {
  assert.match(
    errorsOf("tls: {certificate: /etc/cert.pem}\n")[0] as string,
    /^1:20 tls\.certificate: path \/etc\/cert\.pem is not safe/,
  );
  assert.match(errorsOf("external-ui: /etc/ui\n")[0] as string, /external-ui: path \/etc\/ui/);
  good('tls: {certificate: "-----BEGIN CERTIFICATE-----\\n/etc"}\n');
});
