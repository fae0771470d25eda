import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../test/support/config-env.ts";
import type { ConfigsPatch } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";
import { cidrText } from "#net/address/cidr.ts";
import type { Config } from "./config.ts";
import { parseConfig } from "./parse.ts";
import { patchConfig } from "./patch.ts";

const TEXT = `
mixed-port: 7890
dns: {ipv6: true}
sniffer: {enable: true}
tun: {enable: true, stack: system, mtu: 1500, auto-redirect: true}
listeners: [{name: extra, type: socks, port: 1}]
rule-providers: {d: {type: inline, behavior: domain, payload: [a]}}
`;

function start(text = TEXT): Config {
  const { config, errors } = parseConfig(text, testEnv());
  assert.deepEqual(errors ?? [], []);
  return config as Config;
}

const patched = (patch: ConfigsPatch, config = start()) => patchConfig(config, patch, testEnv());

test("absent keys keep their value", () => {
  const before = start();
  const after = patched({}, before);
  assert.deepEqual(after, before);
  const next = patched(
    { mode: "global", logLevel: "debug", interfaceName: "eth1", unifiedDelay: true },
    before,
  );
  assert.deepEqual(
    [next.mode, next.logLevel, next.general.interfaceName, next.general.unifiedDelay],
    ["global", "debug", "eth1", true],
  );
  assert.deepEqual([before.mode, before.general.interfaceName], ["rule", ""]);
  assert.deepEqual(next.listeners, before.listeners);
});

test("ports and where they listen", () => {
  const after = patched({ mixedPort: 0, port: 8080, allowLan: true, bindAddress: "192.0.2.1" });
  assert.deepEqual(
    after.listeners.map(({ name, hosts, ports }) => [name, hosts, ports]),
    [
      ["DEFAULT-HTTP", ["192.0.2.1"], [8080]],
      ["extra", ["0.0.0.0"], [1]],
    ],
  );
  assert.throws(() => patched({ port: 70_000 }), /port: expected an integer from 0 to 65535/);
  assert.throws(() => patched({ bindAddress: "nowhere" }), ConfigError);
  assert.throws(() => patched({ tproxyPort: 1 }), /tproxy is not in this build/);
});

test("ipv6 can be switched off and on again", () => {
  const off = patched({ ipv6: false });
  assert.deepEqual([off.dns.ipv6, off.tun.inet6Address], [false, []]);
  const on = patched({ ipv6: true }, off);
  assert.deepEqual([on.dns.ipv6, on.tun.inet6Address.length], [true, 1]);
});

test("sniffing works only where the file turned the sniffer on", () => {
  const off = patched({ sniffing: false });
  assert.equal(off.sniffer.enable, false);
  assert.equal(patched({ sniffing: true }, off).sniffer.enable, true);
  assert.equal(patched({ sniffing: true }, start("mixed-port: 1\n")).sniffer.enable, false);
});

test("a tun fragment changes what it names; without enable the TUN stays as it is", () => {
  const { tun } = patched({
    tun: { stack: "Mixed", "dns-hijack": ["any:53"], "kernel-direct-max-entries": 0, device: null, foo: 1 },
  });
  assert.deepEqual([tun.enable, tun.stack, tun.mtu, tun.kernelDirectMaxEntries], [true, "mixed", 1500, 4096]);
  assert.equal(patched({ tun: { "kernel-direct": true } }).tun.kernelDirect, true);
  const bad: readonly (readonly [NonNullable<ConfigsPatch["tun"]>, RegExp])[] = [
    [{ "kernel-direct-max-entries": 65_537 }, /kernel-direct-max-entries/],
    [{ "kernel-direct-max-entries": -1 }, /kernel-direct-max-entries/],
    [{ "kernel-direct-max-entries": 1.5 }, /kernel-direct-max-entries/],
    [
      { "kernel-direct-ebpf": true, "kernel-direct-ebpf-interfaces": ["a"] },
      /kernel-direct-ebpf requires kernel-direct/,
    ],
    [{ stack: "none" }, /tun\.stack/],
    [{ enable: "yes" }, /tun\.enable/],
    [{ "route-address-set": ["d"] }, /has behavior domain/],
  ];
  for (const [fragment, message] of bad) assert.throws(() => patched({ tun: fragment }), message);
});

test("lists of networks are replaced whole", () => {
  const after = patched({ skipAuthPrefixes: ["10.0.0.0/8"], lanAllowedIps: [] });
  assert.deepEqual([after.skipAuthPrefixes.map(cidrText), after.lanAllowedIps], [["10.0.0.0/8"], []]);
  assert.throws(() => patched({ lanDisallowedIps: ["x"] }), /lan-disallowed-ips.*expected a CIDR/);
});
