/** A configuration that another thread has read is the one that would have been read here. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ParseResult } from "#config/parse.ts";
import { SILENT } from "#core/log.ts";
import { Slices } from "#core/slices.ts";
import { packResult, unpackResult } from "#documents/packed-config.ts";
import { ConfigReader } from "#cli/config-reader.ts";
import { openParseEnv, REGISTRIES, type ParseSettings } from "#cli/parse-env.ts";

const BOUNDS = { smallBytes: 0, mostMs: 60_000, mostHeapMiB: 512 };

function openHome() {
  const home = mkdtempSync(join(tmpdir(), "weir-config-"));
  const settings: ParseSettings = { home, geodataMode: false, source: join(home, "config.yaml") };
  const env = openParseEnv(settings, SILENT);
  return {
    home,
    here: new ConfigReader(settings, env, { ...BOUNDS, smallBytes: Number.POSITIVE_INFINITY }),
    there: (bounds = BOUNDS) => new ConfigReader(settings, env, bounds),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** Every section with something in it, odd spellings, aliases. */
const WHOLE = `
mixed-port: 7890
authentication: ["user:0123"]
lan-allowed-ips: [10.0.0.0/8, "fd00::/8"]
hosts: { a.test: 10.0.0.1, b.test: [10.0.0.2, "::1"], c.test: a.test }
dns: { enable: true, nameserver: [https://1.1.1.1/dns-query], nameserver-policy: { "+.a.com": 8.8.8.8 } }
sniffer: { enable: true, sniff: { TLS: { ports: [443, 8000-9000] } } }
tun: { enable: false, route-address: [0.0.0.0/1] }
listeners:
  - { name: in, type: vless, port: 0, listen: 127.0.0.1, users: [{ username: u, uuid: 9d0cb9d0-964f-4ef6-897d-6c6b3ccf9e68 }] }
  - { name: t, type: tun, inet4-address: [198.18.0.1/30] }
tunnels: ["tcp,127.0.0.1:0,example.com:80,DIRECT"]
x-common: &common { server: 127.0.0.1, port: 1, udp: true }
proxies:
  - { <<: *common, name: a, type: socks5, password: "0123" }
  - { <<: *common, name: b, type: tuic }
  - { <<: *common, name: c, type: ss, cipher: aes-128-gcm, password: 0123, dialer-proxy: a }
proxy-groups: [{ name: G, type: url-test, include-all: true, filter: "a|b" }, { name: H, type: select, proxies: [G] }]
proxy-providers: { p: { type: inline, payload: [{ name: n, type: socks5, server: s, port: 0123, password: "0123" }] } }
rule-providers: { r: { type: inline, behavior: classical, payload: ["DOMAIN,a.com"] } }
sub-rules: { s: ["DOMAIN,b.com,G", "MATCH,DIRECT"] }
rules:
  - RULE-SET,r,G
  - SUB-RULE,(NETWORK,udp),s
  - " IP-CIDR , 10.0.0.1/8 , DIRECT , no-resolve"
  - IP-CIDR,10.0.0.0/8,DIRECT,src
  - AND,((DOMAIN,a.com),(NETWORK,tcp)),H
  - DOMAIN-REGEX,^a{1,2},G
  - MATCH,DIRECT
`;

function assertSame(there: ParseResult, here: ParseResult): void {
  assert.deepEqual(here.errors, undefined);
  assert.deepStrictEqual(there, here);
  assert.equal(there.config?.listeners[0]?.protocol, here.config?.listeners[0]?.protocol);
  for (const rules of [there.config?.rules ?? [], ...(there.config?.subRules.values() ?? [])])
    assert.ok(Object.isFrozen(rules) && rules.every((rule) => Object.isFrozen(rule)));
  assert.ok(Object.isFrozen(there.config) && Object.isFrozen(there.config?.proxies));
}

test("every configuration comes over whole: types, prototypes, what the registries have, nothing thawed", async () => {
  using home = openHome();
  assertSame(await home.there().read({ text: WHOLE }), await home.here.read({ text: WHOLE }));
  for (const file of globSync("examples/*.yaml")) {
    const result = await home.here.read({ text: readFileSync(file, "utf8") });
    assertSame(await unpackResult(packResult(result, REGISTRIES), REGISTRIES, new Slices()), result);
  }
});

test("errors come over with their places; so does what the file guard finds", async () => {
  using home = openHome();
  writeFileSync(join(home.home, "config.yaml"), "{}");
  for (const text of [
    "rules:\n  - DOMAIN,a.com,ABSENT\nmixed-port: x\n",
    "traffic-control: { enabled: true, store: config.yaml }\n",
    "a: [\n",
    "tls: { certificate: /etc/passwd }\n",
  ]) {
    const { errors = [], warnings } = await home.there().read({ text });
    assert.ok(errors.length > 0, text);
    assert.deepEqual({ errors, warnings }, await home.here.read({ text }));
  }
  const missing = { file: join(home.home, "none.yaml") };
  await assert.rejects(home.there().read(missing), /there is no .*none\.yaml/);
});

test("a bound that is exceeded ends the thread, and says so", async () => {
  using home = openHome();
  const large = { text: `rules:\n${"  - DOMAIN-SUFFIX,example.com,DIRECT\n".repeat(100_000)}` };
  const impatient = home.there({ ...BOUNDS, mostMs: 1 });
  await assert.rejects(impatient.read(large), /reading the configuration took more than 0\.001 s/);
  const small = home.there({ ...BOUNDS, mostHeapMiB: 24 });
  await assert.rejects(small.read(large), /reading the configuration took more than 24 MiB of memory/);
  const stopped = home.there();
  const reading = stopped.read(large);
  stopped.stop();
  await assert.rejects(reading, /reading the configuration was broken off/);
});

test("an edit is made there, too; a pipe is refused", async () => {
  using home = openHome();
  const file = join(home.home, "config.yaml");
  writeFileSync(file, "# kept\nmixed-port: 1\n");
  const edit = { key: "traffic-control", value: { enabled: false } };
  const [here, there] = [
    await home.here.readEdited({ file }, edit),
    await home.there().readEdited({ file }, edit),
  ];
  assert.deepStrictEqual(there.result, here.result);
  assert.equal(Buffer.from(there.text).toString(), Buffer.from(here.text).toString());
  assert.match(Buffer.from(there.text).toString(), /^# kept\nmixed-port: 1\ntraffic-control:/);
  const pipe = join(home.home, "pipe");
  execFileSync("mkfifo", [pipe]);
  await assert.rejects(home.there().read({ file: pipe }), /pipe is no regular file/);
});
