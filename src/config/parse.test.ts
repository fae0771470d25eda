import assert from "node:assert/strict";
import { test } from "node:test";
import { GOOD_CONFIG } from "../../test/support/broken-configs.ts";
import { errorsOf, good, proxy, socks, warningsOf } from "../../test/support/config-texts.ts";

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
  assert.deepEqual(
    config.warnings.map(({ path }) => path),
    ["proxies[0].skip-cert-verify"],
  );
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
  const text = `tproxy-port: 1\n${proxy("name: w, type: ssh, private-key: x")}listeners: [{name: t, type: snell, users: {a: b}}]\nrules: ['GEOIP,CN,w', 'MATCH,w']\n`;
  const config = good(text);
  assert.deepEqual([config.proxies[0]?.type, config.proxies[0]?.protocol], ["ssh", null]);
  assert.deepEqual([config.listeners, config.rules.length], [[], 1]);
  assert.deepEqual(warningsOf(text), [
    "1:14 tproxy-port: tproxy-port: the protocol tproxy is not in this build; the port is left closed",
    "3:21 proxies[0].type: proxy 0: w: type ssh is not in this build; the node stays and cannot be dialled",
    "4:29 listeners[0].type: listener 0: type snell is not in this build; the listener is left out",
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

test("a cache of no answers and no time for fake addresses mean what is usual", () => {
  const { dns } = good("dns: {nameserver: [1.1.1.1], cache-max-size: 0, fake-ip-ttl: 0}\n");
  assert.deepEqual([dns.cacheMaxSize, dns.fakeIpTtlSeconds], [4096, 1]);
});

test("files are checked where they are named, PEM text is not a file", () => {
  assert.match(
    errorsOf("tls: {certificate: /etc/cert.pem}\n")[0] as string,
    /^1:20 tls\.certificate: path \/etc\/cert\.pem is not safe/,
  );
  assert.match(errorsOf("external-ui: /etc/ui\n")[0] as string, /external-ui: path \/etc\/ui/);
  good('tls: {certificate: "-----BEGIN CERTIFICATE-----\\n/etc"}\n');
});
