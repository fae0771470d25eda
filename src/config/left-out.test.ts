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
    "dns: {enable: true, listen: nowhere, nameserver: [1.1.1.1]}\n",
    /^1:29 dns\.listen: expected host:port .*; no DNS listener is opened$/,
    ({ dns }) => [
      [dns.listen, dns.enable, dns.nameserver.length],
      [null, true, 1],
    ],
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
    "socks-port: 99999\nmode: none\nntp: {port: -1, interval: 0}\n",
    testEnv(),
  );
  assert.deepEqual(
    [errors.map(({ path }) => path), warnings.map(({ path }) => path)],
    [
      ["mode", "ntp.interval"],
      ["socks-port", "ntp.port"],
    ],
  );
});
