/** Warnings of the parser: at their places, once each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { socks, warningsOf } from "../../test/support/config-texts.ts";

test("keys that ask for what this build does not do are warned of, once each, at their places", () => {
  const text = `inbound-tfo: true
inbound-mptcp: true
tun: {include-package: [a], exclude-package: [b], include-android-user: [1]}
tls: {ech-key: k}
experimental: {dialer-ip4p-convert: true}
ntp: {enable: true, write-to-system: true}
proxies:
  - {name: a, ${socks}, tfo: true, mptcp: true}
  - {name: b, ${socks}, tfo: true}
proxy-providers:
  p: {type: file, path: p, age-secret-key: hidden, override: {override-expr: "x"}}
rule-providers:
  r: {type: file, path: r, behavior: domain, path-in-bundle: x}
`;
  const warnings = warningsOf(text);
  assert.deepEqual(
    warnings.map((warning) => warning.split(" ").slice(0, 2).join(" ").replace(/:$/, "")),
    [
      "1:1 inbound-tfo",
      "2:1 inbound-mptcp",
      "3:7 tun.include-package",
      "3:29 tun.exclude-package",
      "3:51 tun.include-android-user",
      "4:7 tls.ech-key",
      "5:16 experimental.dialer-ip4p-convert",
      "6:21 ntp.write-to-system",
      "8:49 proxies[0].tfo",
      "8:60 proxies[0].mptcp",
      "11:28 proxy-providers.p.age-secret-key",
      "11:63 proxy-providers.p.override.override-expr",
      "13:46 rule-providers.r.path-in-bundle",
    ],
  );
  assert.doesNotMatch(warnings.join("\n"), /hidden/);
  assert.deepEqual(
    warningsOf("inbound-tfo: false\ndns: {prefer-h3: true, nameserver: [quic://1.1.1.1, h3://1.1.1.1/q]}\n"),
    [],
  );
});

test("names that lead nowhere and entries without a value are warned of at their places", () => {
  const text = `external-doh-server: dns-query
sub-rules: {list: ["MATCH,DIRECT"], none: }
listeners:
  - {name: a, type: mixed, rule: lisst, proxy: DIRCT}
  - {name: b, type: tun, device: b, rule: absent, proxy: absent}
  - {name: c, type: mixed, rule: list, proxy: DIRECT}
proxy-providers:
  p: {type: file, path: p, proxy: absent, dialer-proxy: absent, override: {dialer-proxy: absent}}
  q: &none
rule-providers:
  r: {type: file, path: r, behavior: domain, proxy: absent}
  s: *none
hosts: {a.com: , b.com: ~, c.com: 1.1.1.1}
dns: {nameserver-policy: {a.com: null}, proxy-server-nameserver-policy: , cache-algorithm: lfu}
`;
  assert.deepEqual(
    warningsOf(text).map((warning) => warning.split(" ").slice(0, 2).join(" ")),
    [
      "1:22 external-doh-server:",
      "2:37 sub-rules.none:",
      "4:34 listeners[0].rule:",
      "4:48 listeners[0].proxy:",
      "5:43 listeners[1].rule:",
      "5:58 listeners[1].proxy:",
      "8:35 proxy-providers.p.proxy:",
      "8:57 proxy-providers.p.dialer-proxy:",
      "8:90 proxy-providers.p.override.dialer-proxy:",
      "9:3 proxy-providers.q:",
      "11:53 rule-providers.r.proxy:",
      "12:3 rule-providers.s:",
      '13:9 hosts["a.com"]:',
      '13:18 hosts["b.com"]:',
      '14:27 dns.nameserver-policy["a.com"]:',
      "14:92 dns.cache-algorithm:",
    ],
  );
});

test("a server that no socket can be opened to is warned of", () => {
  const odd = ["http://a", "a.com:80", "a b", "fe80:::1", "[::1"];
  const fine = ["a.com", "::1", "[::1]", "1.2.3.4", "香港.example", "_x.a"];
  const nodes = [...odd, ...fine].map((server, at) => ({ name: `n${at}`, type: "socks5", server, port: 1 }));
  const warnings = warningsOf(JSON.stringify({ proxies: nodes }));
  assert.equal(warnings.length, odd.length, warnings.join("\n"));
  for (const [at, server] of odd.entries())
    assert.match(
      warnings[at] as string,
      new RegExp(`proxies\\[${at}\\]\\.server: proxy ${at}: 'server' expected a name`),
      server,
    );
});
