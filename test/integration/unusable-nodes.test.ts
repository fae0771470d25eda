/** One node that this build cannot speak does not cost the profile. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { REGISTRIES } from "#cli/parse-env.ts";
import { parseConfig } from "#config/parse.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const weir = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "bin", "weir");

const PROFILE = `
proxies:
  - { name: quic, type: hysteria, server: 192.0.2.1, port: 443 }
  - name: shadow
    type: vless
    server: 192.0.2.1
    port: 443
    uuid: b831381d-6324-4d53-ad4f-8cda48b30811
    tls: true
    shadow-tls-opts: { password: secret }
  - { name: plain, type: direct }
proxy-groups:
  - { name: Mixed, type: select, proxies: [shadow, plain] }
  - { name: Hopeless, type: select, proxies: [shadow, quic] }
rules: ["MATCH,Mixed"]
`;

test("the rest of the profile works, and every such node and group is named", async () => {
  const [controller] = (await freePorts(1)) as [number];
  await using core = await startCore(`external-controller: 127.0.0.1:${controller}\n${PROFILE}`);
  assert.match(core.output(), /level=warning msg="\S+config\.yaml:\d+:\d+ proxies\[0\]\.type: .*hysteria/);
  assert.match(
    core.output(),
    /level=warning msg="\S+config\.yaml:\d+:\d+ proxies\[1\]\.shadow-tls-opts: .*shadow-tls.*cannot be dialled"/,
  );
  assert.match(core.output(), /level=warning msg="group Hopeless: none of its members can be dialled/);
  assert.doesNotMatch(core.output(), /group Mixed/);
  const delay = await fetch(
    `http://127.0.0.1:${controller}/proxies/shadow/delay?timeout=1000&url=http://192.0.2.1/`,
  );
  assert.equal(delay.status, 503);
  const answer = await fetch(`http://127.0.0.1:${controller}/proxies`);
  const { proxies } = (await answer.json()) as { proxies: Record<string, { unavailable?: string }> };
  assert.match(proxies["shadow"]?.unavailable ?? "", /shadow-tls/);
  assert.match(proxies["Hopeless"]?.unavailable ?? "", /none of its members/);
  assert.equal(proxies["plain"]?.unavailable, undefined);
  assert.equal(proxies["Mixed"]?.unavailable, undefined);
});

test("a group without members says where its traffic goes", async () => {
  const [controller] = (await freePorts(1)) as [number];
  await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
proxy-providers:
  none: { type: file, path: missing.yaml }
proxy-groups:
  - { name: Empty, type: select, use: [none] }
  - { name: Closed, type: select, use: [none], empty-fallback: REJECT }
  - { name: Filled, type: select, use: [none], proxies: [DIRECT] }
rules: ["MATCH,Empty"]
`);
  assert.match(
    core.output(),
    /level=warning msg="group Empty: it has no members, .* COMPATIBLE, which is DIRECT/,
  );
  assert.match(core.output(), /level=warning msg="group Closed: it has no members, .* REJECT/);
  assert.doesNotMatch(core.output(), /group Filled/);
  const answer = await fetch(`http://127.0.0.1:${controller}/proxies/Empty`);
  const { unavailable } = (await answer.json()) as { unavailable?: string };
  assert.match(unavailable ?? "", /no members/);
});

test("-t names them, too", async () => {
  const encoded = Buffer.from(PROFILE).toString("base64");
  const { stdout } = await promisify(execFile)(weir, ["-d", "/nonexistent", "-t", "-config", encoded]);
  assert.match(stdout, /proxies\[0\]\.type: .*hysteria/);
  assert.match(stdout, /proxies\[1\]\.shadow-tls-opts: .*shadow-tls/);
  assert.match(stdout, /configuration test is successful\n$/);
});

test("a provider keeps its other nodes", async () => {
  const [controller] = (await freePorts(1)) as [number];
  const [, shadow = ""] = /(- name: shadow[^]*?password: secret })/.exec(PROFILE) ?? [];
  await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
proxy-providers:
  far:
    type: inline
    payload:
      ${shadow.replaceAll("\n", "\n    ")}
      - { name: plain, type: direct }
proxy-groups:
  - { name: Mixed, type: select, use: [far] }
rules: ["MATCH,Mixed"]
`);
  assert.match(core.output(), /payload\[0\]\.shadow-tls-opts: .*shadow-tls.*cannot be dialled"/);
  const answer = await fetch(`http://127.0.0.1:${controller}/providers/proxies/far`);
  const { proxies } = (await answer.json()) as { proxies: readonly { name: string }[] };
  assert.deepEqual(
    proxies.map(({ name }) => name),
    ["shadow", "plain"],
  );
});

/** An entry each that other programs start with; each costs itself, and the rest of the profile works. */
const ODD_ENTRIES: readonly (readonly [where: RegExp, text: string])[] = [
  [/sniffer\.skip-domain/, "sniffer: {enable: true, skip-domain: [Mijia Cloud]}"],
  [/dns\.fake-ip-filter/, "dns: {fake-ip-filter: ['a b']}"],
  [/dns\.nameserver-policy/, "dns: {nameserver-policy: {'a b': 1.1.1.1}}"],
  [/dns\.nameserver\b/, "dns: {nameserver: ['ts://node']}"],
  [/dns\.nameserver\[0\]/, "dns: {nameserver: ['tls://1.1.1.1#h3=true']}"],
  [/dns\.nameserver\[0\]/, "dns: {nameserver: [dns.example/dns-query]}"],
  [/hosts/, "hosts: {'a b': 192.0.2.1}"],
  [/rules\[0\]/, "rules: ['GEOIP,,DIRECT', 'MATCH,DIRECT']"],
  [/rules\[0\]/, "rules: ['DOMAIN,a b,DIRECT', 'MATCH,DIRECT']"],
  [/rules\[0\]/, "rules: ['DOMAIN-SUFFIX,,DIRECT', 'MATCH,DIRECT']"],
  [/rules\[0\]/, "rules: ['DST-PORT,99999,DIRECT', 'MATCH,DIRECT']"],
  [/rules\[0\]/, "rules: ['AND,((PROCESS-NAME,),(NETWORK,udp)),DIRECT', 'MATCH,DIRECT']"],
  [/rules\[0\]/, "rules: ['DOMAIN-REGEX,(a)\\1,DIRECT', 'MATCH,DIRECT']"],
  [
    /proxies\[0\]\.cipher/,
    "proxies: [{name: a, type: ss, server: s, port: 1, password: p, cipher: rc4-md5-6}]",
  ],
  [/proxy-providers\.p\.url/, "proxy-providers: {p: {type: http, url: ''}}"],
  [/proxy-providers\.p\.url/, "proxy-providers: {p: {type: http, path: p.yaml}}"],
  [/rule-providers\.p\.url/, "rule-providers: {p: {type: http, behavior: domain, url: x}}"],
  [/proxy-groups\[0\]\.url/, "proxy-groups: [{name: g, type: url-test, proxies: [DIRECT], url: nonsense}]"],
  [/listeners\[0\]\.shadow-tls/, listener("shadow-tls: {enable: true, version: 3}")],
  [/listeners\[0\]\.res-tls/, listener("res-tls: {enable: true}")],
  [/listeners\[0\]\.kcp-tun/, listener("kcp-tun: {enable: true}")],
  [/listeners\[0\]\.simple-obfs/, listener("simple-obfs: {enable: true, mode: http}")],
  [
    /listeners\[0\]\.cipher/,
    "listeners: [{name: l, type: shadowsocks, port: 1, password: p, cipher: nonsense}]",
  ],
  [/listeners\[0\]\.mux-option/, listener("mux-option: {brutal: {enabled: true}}")],
  [
    /listeners\[0\]\.xhttp-config\.session-key/,
    "listeners: [{name: l, type: vless, port: 1, users: [{uuid: x}], allow-insecure: true, xhttp-config: {session-key: s}}]",
  ],
  [
    /listeners\[0\]\.reality-config/,
    "listeners: [{name: l, type: socks, port: 1, reality-config: {dest: a, private-key: b}}]",
  ],
];

function listener(more: string): string {
  return `listeners: [{name: l, type: shadowsocks, port: 1, password: p, cipher: aes-128-gcm, ${more}}]`;
}

test("an entry of any section that cannot be used is left out, with its place, and costs nothing else", () => {
  const files = { resolve: (path: string) => path };
  for (const [where, text] of ODD_ENTRIES) {
    const { config, errors } = parseConfig(`${text}\n`, { registries: REGISTRIES, files, userAgent: "test" });
    assert.deepEqual(errors, undefined, text);
    assert.deepEqual(config?.listeners ?? [], [], text); // none is opened in a weaker form
    const [first] = (config?.warnings ?? []).filter(({ path }) => where.test(path));
    assert.ok(
      first !== undefined && first.line === 1 && first.column > 1,
      `${text}: ${JSON.stringify(config?.warnings)}`,
    );
    if (text.startsWith("rules:"))
      assert.deepEqual(
        config?.rules.map(({ text: rule }) => rule),
        ["MATCH,DIRECT"],
      );
  }
  const asked =
    "listeners: [{name: l, type: shadowsocks, port: 1, password: p, cipher: aes-128-gcm, simple-obfs: {enable: false}}]\n";
  const { config } = parseConfig(asked, { registries: REGISTRIES, files, userAgent: "test" });
  assert.equal(config?.listeners.length, 1); // what is switched off asks for nothing
});

test("logic rules without their outer brackets mean what they say", () => {
  const files = { resolve: (path: string) => path };
  const rules = ["AND,(DOMAIN,a.com),(NETWORK,UDP),DIRECT", "OR,(DOMAIN,a.com),DIRECT"];
  const { config } = parseConfig(JSON.stringify({ rules }), {
    registries: REGISTRIES,
    files,
    userAgent: "test",
  });
  assert.deepEqual(config?.warnings, []);
  const [and] = config?.rules ?? [];
  const nothing = { size: -1, reads: [], match: () => undefined };
  const scope = {
    ruleSet: () => nothing,
    geosite: () => nothing,
    geoip: () => nothing,
    asn: () => nothing,
    inboundTypes: new Set<string>(),
  };
  const { matcher } = and?.type.parse(and.payload, and.options, scope) ?? {};
  assert.equal(matcher?.match({ host: "a.com", network: "udp" }), true);
  assert.equal(matcher?.match({ host: "a.com", network: "tcp" }), false);
});

test("nodes with an unauthenticated cipher are used, and one warning says what they lack", () => {
  const files = { resolve: (path: string) => path };
  const proxies = ["rc4-md5", "AES-256-CFB", "chacha20-ietf", "aes-256-gcm"].map((cipher) => ({
    name: cipher,
    type: "ss",
    server: "s",
    port: 1,
    password: "p",
    cipher,
  }));
  const { config } = parseConfig(JSON.stringify({ proxies }), {
    registries: REGISTRIES,
    files,
    userAgent: "test",
  });
  assert.deepEqual(
    config?.proxies.map(({ inert }) => inert),
    [null, null, null, null],
  );
  const said = (config?.warnings ?? []).filter(({ message }) =>
    /protects nothing against change/.test(message),
  );
  assert.deepEqual(
    said.map(({ path }) => path),
    ["proxies[0].cipher", "proxies[1].cipher", "proxies[2].cipher"],
  );
  assert.equal(config?.warnings.length, 3);
});

test("what is said of many nodes is one line with their number; -t --all shows each", async () => {
  const node = (at: number) =>
    `  - {name: n${at}, type: trojan, server: a, port: 1, password: p, skip-cert-verify: true, client-fingerprint: android}`;
  const profile = `proxies:\n${Array.from({ length: 300 }, (_, at) => node(at)).join("\n")}\n`;
  const encoded = Buffer.from(profile).toString("base64");
  const check = async (...more: string[]) => {
    const args = ["-d", "/nonexistent", "-t", "-config", encoded, ...more];
    const { stdout } = await promisify(execFile)(weir, args, { maxBuffer: 10_000_000 });
    return stdout.split("\n").filter((line) => line.includes("level=warning"));
  };
  const short = await check();
  assert.equal(short.length, 2, short.join("\n"));
  assert.match(
    short[0] ?? "",
    /configuration:2:\d+ proxies\[0\]\.skip-cert-verify: .*\(300 nodes: n0, n1, n2 and 297 more\)/,
  );
  assert.match(short[1] ?? "", /client-fingerprint android .*\(300 nodes/);
  assert.equal((await check("--all")).length, 602);
});
