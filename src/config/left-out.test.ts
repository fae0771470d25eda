/** One bad value that other programs start with: it costs its own entry, with a line that says where, and nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../test/support/config-env.ts";
import type { Config } from "./config.ts";
import { parseConfig } from "./parse.ts";

type Row = readonly [name: string, text: string, warning: RegExp, check: (config: Config) => unknown[]];

const socks = "type: socks5, server: 127.0.0.1, port: 1";
const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name);

/** `check` answers with pairs that must be equal. */
const ROWS: readonly Row[] = [
  [
    "a node without a name",
    `proxies: [{name: "", ${socks}}, {name: a, ${socks}}]\n`,
    /^1:18 proxies\[0\]\.name: proxy 0: 'name' is empty; the node is left out$/,
    ({ proxies }) => [names(proxies), ["a"]],
  ],
  [
    "a node with the name of no interface",
    `proxies: [{name: a, ${socks}, interface-name: wlan-with-a-long-name}, {name: b, ${socks}}]\n`,
    /^1:\d+ proxies\[0\]\.interface-name: proxy 0: a: 'interface-name' expected an interface, whose name has at most 15 bytes/,
    ({ proxies }) => [proxies.map(({ inert }) => inert !== null), [true, false]],
  ],
  [
    "interface-name: nothing leaves by another device",
    "interface-name: eth0-über-alles\n",
    /^1:17 interface-name: expected an interface, whose name has at most 15 bytes, .*; nothing can be dialled/,
    ({ general }) => [general.interfaceName, "eth0-über-alles"],
  ],
  [
    "a port that there is not",
    "socks-port: 99999\nmixed-port: 7890\nport: -1\n",
    /^1:13 socks-port: expected an integer from 0 to 65535, got 99999; it is left out\n3:7 port: /,
    ({ listeners }) => [names(listeners), ["DEFAULT-MIXED"]],
  ],
  [
    "a listener on such a port",
    "listeners: [{name: a, type: socks, port: 99999}, {name: b, type: socks, port: 1}]\n",
    /^1:42 listeners\[0\]\.port: listener 0: a: 'port' expected a port from 0 to 65535; the listener is left out$/,
    ({ listeners }) => [names(listeners), ["b"]],
  ],
  [
    "tunnels with addresses that are none",
    "tunnels: ['tcp,127.0.0.1:1,nowhere,DIRECT', {network: tcp, address: x, target: '1.1.1.1:53'}, 'tcp,127.0.0.1:2,1.1.1.1:53']\n",
    /^1:11 tunnels\[0\]\.target: tunnel 0: 'target' expected host:port .*; the tunnel is left out\n1:\d+ tunnels\[1\]\.address: /,
    ({ tunnels }) => [tunnels.map(({ listen }) => listen.port), [2]],
  ],
  [
    "the Controller's address",
    "external-controller: nowhere\nexternal-controller-tls: nowhere\nmixed-port: 7890\n",
    /^1:22 external-controller: expected host:port .*; it is left out\n2:26 external-controller-tls: /,
    ({ controller, listeners }) => [
      [controller.externalController, controller.externalControllerTls, names(listeners)],
      ["", "", ["DEFAULT-MIXED"]],
    ],
  ],
  [
    "URLs of databases",
    "geox-url: {geoip: 'no url', geosite: 'ftp://x/', asn: 'https://x.test/a'}\n",
    /^1:19 geox-url\.geoip: expected a URL .*; it is left out\n1:38 geox-url\.geosite: /,
    ({ geodata }) => [
      [new URL(geodata.geoxUrl.geoip).protocol, geodata.geoxUrl.asn],
      ["https:", "https://x.test/a"],
    ],
  ],
  [
    "the time server",
    "ntp: {enable: true, server: '', port: 99999, interval: 5}\n",
    /^1:29 ntp\.server: must not be empty; it is left out\n1:39 ntp\.port: /,
    ({ ntp }) => [
      [ntp.enable, ntp.server, ntp.port, ntp.interval],
      [true, "time.apple.com", 123, 5],
    ],
  ],
  [
    "items of fallback-filter",
    "dns: {nameserver: [1.1.1.1], fallback-filter: {ipcidr: [240.0.0.0/44, 10.0.0.0/8, 1.2.3/8], domain: ['a..b', a.test]}}\n",
    /^1:57 dns\.fallback-filter\.ipcidr\[0\]: expected a CIDR .*; it is left out\n1:\d+ .*ipcidr\[2\]: .*\n1:\d+ .*domain\[0\]: .* is no domain pattern, .*; it matches nothing$/,
    ({ dns: { fallbackFilter } }) => [
      [fallbackFilter.ipcidr, fallbackFilter.domain],
      [[{ ip: "10.0.0.0", bits: 8 }], ["a.test"]],
    ],
  ],
  [
    "items of fake-ip-filter and of the sniffer's lists",
    "dns: {nameserver: [1.1.1.1], fake-ip-filter: ['a..b', 'lan.', +.lan]}\nsniffer: {force-domain: ['a..b', a.test]}\n",
    /^1:47 dns\.fake-ip-filter\[0\]: .* it matches nothing\n1:55 .*\n2:26 sniffer\.force-domain\[0\]: .* it matches nothing$/,
    ({ dns }) => [dns.fakeIpFilter, [{ kind: "domain", pattern: "+.lan" }]],
  ],
  [
    "nameservers that are none; a list of nothing else fails, and its names go nowhere else",
    "dns: {nameserver: [1.1.1.1, 'tls://1.1.1.1:99999', a..b, 'https://', ''], nameserver-policy: {a.test: a..b}}\n",
    /^1:29 dns\.nameserver\[1\]: .* port 99999 is outside 1 to 65535; it is left out\n(.*\n){3}1:95 dns\.nameserver-policy\["a\.test"\]\[0\]: .*"a\.\.b" is neither .*\n1:103 .*: every question to it fails$/,
    ({ dns }) => [
      [dns.nameserver.map(({ text }) => text), dns.nameserverPolicy.map(({ servers }) => servers[0]?.scheme)],
      [["udp://1.1.1.1:53"], ["rcode"]],
    ],
  ],
  [
    "a rule without a word",
    "rules: ['', 'MATCH,DIRECT']\n",
    /^1:9 rules\[0\]: rules\[0\] \[\]: the line is empty and is left out$/,
    ({ rules }) => [rules.map(({ text }) => text), ["MATCH,DIRECT"]],
  ],
  [
    "the address of the DNS listener",
    "dns: {enable: true, listen: nowhere, listen-quic: 'a.test:853', listen-h3: 'localhost:443', nameserver: [1.1.1.1]}\n",
    /^1:29 dns\.listen: expected host:port .*; no DNS listener is opened\n1:51 dns\.listen-quic: .*"a\.test:853"; no DNS listener is opened\n.* dns\.listen-h3 needs .*$/,
    ({ dns }) => [
      [dns.listen, dns.listenQuic, dns.listenH3, dns.enable, dns.nameserver.length],
      [null, null, { host: "127.0.0.1", port: 443 }, true, 1],
    ],
  ],
  [
    "networks of skip-auth-prefixes",
    "skip-auth-prefixes: ['', nowhere, 127.0.0.0/8]\n",
    /^1:22 skip-auth-prefixes\[0\]: expected a CIDR .*; it is left out\n1:26 skip-auth-prefixes\[1\]: /,
    ({ skipAuthPrefixes }) => [skipAuthPrefixes.map(({ bits }) => bits), [8]],
  ],
  [
    "marks and times of the whole program",
    "routing-mark: -1\nkeep-alive-idle: -5\ngeo-update-interval: 0\ngeodata-loader: fast\nntp: {interval: 0}\ndns: {listen-routing-mark: -1}\n",
    /^1:15 routing-mark: expected an integer from 0 to 4294967295, got -1; it is left out(\n\d:\d+ .*; it is left out){5}$/,
    ({ general, geodata, ntp }) => [
      [general.routingMark, general.keepAlive.idleMs, geodata.geoUpdateInterval, ntp.interval],
      [0, 0, 24, 30],
    ],
  ],
  [
    "tunnels without an address",
    "tunnels: ['', ~, {network: tcp, target: '1.1.1.1:53'}, 'tcp,127.0.0.1:1,1.1.1.1:53']\n",
    /^1:11 tunnels\[0\]: .*; the tunnel is left out\n1:15 tunnels\[1\]: .*\n1:18 tunnels\[2\]\.address: tunnel 2: 'address' is required; the tunnel is left out$/,
    ({ tunnels }) => [tunnels.map(({ listen }) => listen.port), [1]],
  ],
  [
    "hosts",
    "hosts: {a: 300.1.1.1, b: '1.2.3.4:80', c: [1.1.1.1, b.com], d: [], e: '', f: 1.1.1.1}\n",
    /^1:12 hosts\.a: hosts "a": expected IP addresses, another domain or lan, got "300.1.1.1"; the entry is left out(\n1:\d+ hosts\.[b-e]: .*; the entry is left out){4}$/,
    ({ hosts }) => [hosts.map(({ pattern }) => pattern), ["localhost", "f"]],
  ],
  [
    "listeners without a name of their own; of several the last one stays",
    "listeners: [{type: socks}, {name: '', type: socks}, {name: DEFAULT-MIXED, type: socks}, {name: l, type: socks}, {name: l, type: http}]\n",
    /^1:13 listeners\[0\]\.name: listener 0: 'name' is missing; the listener is left out\n.*\n.* listener 2: the name DEFAULT-MIXED belongs to a top-level key; .*\n.* listener 3: the name l comes again further down; the listener is left out$/,
    ({ listeners }) => [listeners.map(({ name, protocol }) => [name, protocol.type]), [["l", "http"]]],
  ],
  [
    "a listener with a mark that is none; no address is every address",
    "listeners: [{name: m, type: socks, routing-mark: -1}, {name: l, type: socks, listen: ''}]\n",
    /^1:50 listeners\[0\]\.routing-mark: listener 0: m: 'routing-mark' .*; the listener is left out$/,
    ({ listeners }) => [listeners.map(({ name, hosts }) => [name, hosts]), [["l", ["0.0.0.0"]]]],
  ],
  [
    "numbers of a group",
    "proxy-groups: [{name: g, type: url-test, proxies: [DIRECT], interval: -1, timeout: 1.5, max-failed-times: -1, expected-status: 99999}]\n",
    /^(1:\d+ proxy-groups\[0\]\.\S+: proxy group\[0\]: g: '(interval|timeout|max-failed-times|expected-status)' .*; it is left out\n?){4}$/,
    ({ groups: [group] }) => [
      [group?.settings?.intervalSeconds, group?.settings?.timeoutMs, group?.settings?.maxFailedTimes],
      [300, 5000, 5],
    ],
  ],
  [
    "numbers of providers, and lists that can hold nothing",
    "proxy-providers: {p: {type: http, url: 'https://x.test/', interval: -1, health-check: {interval: -1}, override: {routing-mark: -1, ip-version: seven}}}\nrule-providers: {m: {type: file, behavior: classical, format: mrs, path: m}, e: {type: inline, behavior: domain}}\n",
    /^(1:\d+ .*; it is left out\n){4}2:63 rule-providers\.m\.format: .* mrs does not hold behavior classical; .*; the list is empty\n.*'payload' needs at least one item .*; the list is empty$/,
    ({ proxyProviders, ruleProviders }) => [
      [proxyProviders.get("p")?.interval, [...ruleProviders.values()].map(({ type }) => type)],
      [0, ["inline", "inline"]],
    ],
  ],
  [
    "what is wrong with single nodes",
    "proxies: [{name: , type: direct}, {name: m, type: direct, routing-mark: -1}, {name: p, type: socks5, server: a, port: many}, {name: d, type: direct, dialer-proxy: absent}, {name: x, type: direct, dialer-proxy: y}, {name: y, type: direct, dialer-proxy: x}]\n",
    /^1:\d+ proxies\[0\]\.name: .*; the node is left out\n(1:\d+ proxies\[[1-4]\]\.\S+: .*(cannot|can) be dialled\n?){4}$/,
    ({ proxies }) => [proxies.map(({ inert }) => inert !== null), [true, true, true, true, true]],
  ],
  [
    "nodes of a provider that is written here",
    "proxy-providers: {p: {type: inline, payload: [{name: a, type: direct}, {name: a, type: direct}, {name: b, type: sokcs}, {name: c, type: socks5, port: 1}, {type: direct}, ~]}}\n",
    /^1:79 .*: proxy a is the duplicate name; it is left out\n.* unsupport proxy type: sokcs.*; the node stays and cannot be dialled\n.*'' has unset fields: server; the node stays and cannot be dialled\n.*; the node is left out\n.*; it is left out$/,
    ({ proxyProviders }) => [proxyProviders.size, 1],
  ],
  [
    "ports and addresses of the sniffer and of the TUN",
    "sniffer: {sniff: {TLS: {ports: [99999, 443]}}}\ntun: {dns-hijack: [any, nowhere], mtu: 99999999, route-exclude-address-set: [nothing]}\n",
    /^1:33 sniffer\.sniff\.TLS\.ports\[0\]: .*; it is left out\n2:25 tun\.dns-hijack\[1\]: .*; it is left out\n2:40 tun\.mtu: .*\n.* rule-set "nothing" not found in rule-providers; it is left out$/,
    ({ sniffer, tun }) => [
      [sniffer.sniff[0]?.ports, tun.dnsHijack, tun.mtu, tun.routeExcludeAddressSet],
      [[{ from: 443, to: 443 }], [{ host: "0.0.0.0", port: 53 }], 9000, []],
    ],
  ],
  [
    "a TUN listener with a value that is none",
    "listeners: [{name: t, type: tun, mtu: 99999999}]\n",
    /^1:\d+ listeners\[0\]\.mtu: listener 0: t: 'mtu' .*; the listener is left out$/,
    ({ tunListeners }) => [tunListeners, []],
  ],
];

for (const [name, text, warning, check] of ROWS)
  test(`left out: ${name}`, () => {
    const { config, errors = [], warnings } = parseConfig(text, testEnv());
    assert.deepEqual(errors, []);
    const said = warnings.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
    assert.match(said.join("\n"), warning);
    const [actual, expected] = check(config as Config);
    assert.deepEqual(actual, expected);
  });

test("left out: what is wrong besides is an error, and both are said in one pass", () => {
  const { errors = [], warnings } = parseConfig(
    "socks-port: 99999\nmode: none\nntp: {port: -1, enable: maybe}\n",
    testEnv(),
  );
  assert.deepEqual(
    [errors.map(({ path }) => path), warnings.map(({ path }) => path)],
    [
      ["mode", "ntp.enable"],
      ["socks-port", "ntp.port"],
    ],
  );
});
