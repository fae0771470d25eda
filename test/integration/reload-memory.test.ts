/**
 * After 50 reloads at most two runtimes are in memory, and of what a runtime consists no more than two have, whatever the
 * configuration: what is kept of an old one is a leak.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse, stringify } from "yaml";
import { TLS_KEYS } from "../support/managed-core.ts";
import { skipNetns } from "../support/netns.ts";
import { RELOAD_MEMORY, type ReloadMemory } from "../support/reload-memory.ts";

const EXAMPLES = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "examples");
const RELOADS = 50;

/** A TUN needs a namespace and, in two of them, the library of nftables; its own kind is below. */
const WITH_TUN = new Set(["kernel-direct.yaml", "router-tun.yaml"]);

const LISTS = `
proxies:
  - { name: a, type: socks5, server: 127.0.0.1, port: 1 }
  - { name: b, type: vless, server: 127.0.0.1, port: 1, uuid: 6d27a52f-4539-4ac1-9bd4-b8e05e53c197, tls: true }
  - { name: c, type: ss, server: 127.0.0.1, port: 1, cipher: aes-128-gcm, password: p, dialer-proxy: a }
  - { name: d, type: anytls, server: 127.0.0.1, port: 1, password: p }
proxy-providers:
  file: { type: file, path: nodes.yaml, health-check: { enable: true, interval: 300, url: 'http://127.0.0.1:1/' } }
  inline: { type: inline, payload: [{ name: e, type: direct }] }
rule-providers:
  domains: { type: file, behavior: domain, format: text, path: domains.txt }
  networks: { type: inline, behavior: ipcidr, payload: [10.0.0.0/8] }
  lines: { type: inline, behavior: classical, payload: ["DOMAIN-SUFFIX,example.org"] }
  gone: { type: http, behavior: domain, format: text, url: 'http://127.0.0.1:1/', path: gone.txt, interval: 60 }
proxy-groups:
  - { name: g1, type: select, proxies: [a, b, DIRECT], use: [file] }
  - { name: g2, type: url-test, proxies: [a, b], url: 'http://127.0.0.1:1/', interval: 60 }
  - { name: g3, type: fallback, proxies: [a, c], url: 'http://127.0.0.1:1/', interval: 60 }
  - { name: g4, type: load-balance, proxies: [a, d], url: 'http://127.0.0.1:1/', interval: 60 }
sub-rules: { inner: ["DOMAIN-KEYWORD,x,DIRECT", "MATCH,g2"] }
rules:
  - RULE-SET,domains,g1
  - RULE-SET,networks,g2
  - RULE-SET,lines,g3
  - RULE-SET,gone,g4
  - SUB-RULE,(NETWORK,udp),inner
  - MATCH,g1
`;

const NAMES = `
mixed-port: 0
ipv6: true
hosts: { "+.test": 127.0.0.1 }
profile: { store-fake-ip: true, store-selected: true }
dns:
  enable: true
  listen: 127.0.0.1:0
  enhanced-mode: fake-ip
  fake-ip-filter: ["+.lan"]
  nameserver: [127.0.0.1:1, "tcp://127.0.0.1:1", "https://127.0.0.1:1/dns-query"]
  fallback: ["tls://127.0.0.1:1"]
  nameserver-policy: { "+.example.org": 127.0.0.1:1 }
sniffer: { enable: true, sniff: { TLS: { ports: [443] }, HTTP: { ports: [80] }, QUIC: { ports: [443] } } }
ntp: { enable: true, server: 127.0.0.1, port: 1 }
tunnels: [{ network: [tcp, udp], address: "127.0.0.1:0", target: 127.0.0.1:1, proxy: DIRECT }]
rules: ["GEOIP,LAN,DIRECT", "PROCESS-NAME,x,REJECT", "MATCH,DIRECT"]
`;

const DOORS = `
listeners:
  - { name: socks, type: socks, listen: 127.0.0.1, port: 0, users: [{ username: u, password: p }] }
  - { name: vless, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [{ username: u, uuid: 6d27a52f-4539-4ac1-9bd4-b8e05e53c197 }] }
  - { name: ss, type: shadowsocks, listen: 127.0.0.1, port: 0, password: p, cipher: aes-128-gcm }
  - name: anytls
    type: anytls
    listen: 127.0.0.1
    port: 0
    users: { u: p }
${TLS_KEYS}  - name: trojan
    type: trojan
    listen: 127.0.0.1
    port: 0
    users: [{ username: u, password: p }]
${TLS_KEYS}rules: ["MATCH,DIRECT"]
`;

const TUN = `
dns: { enable: true, enhanced-mode: fake-ip, nameserver: [127.0.0.1:1] }
tun: { enable: true, device: weirmem, auto-route: false, auto-detect-interface: false, dns-hijack: ["any:53"] }
${LISTS}`;

/** With what outlives reloads: a tunnel, a listener that dials by itself, and a DNS service. */
function withKept(text: string): string {
  const config = parse(text) as Readonly<Record<string, unknown>> & {
    readonly dns?: object;
    readonly listeners?: readonly unknown[];
    readonly tunnels?: readonly unknown[];
  };
  const kept = {
    name: "kept",
    type: "vless",
    listen: "127.0.0.1",
    port: 0,
    "allow-insecure": true,
    users: [{ username: "u", uuid: "6d27a52f-4539-4ac1-9bd4-b8e05e53c197" }],
    fallbacks: [{ dest: "127.0.0.1:1" }],
  };
  const tunnel = { network: ["tcp", "udp"], address: "127.0.0.1:0", target: "127.0.0.1:1", proxy: "DIRECT" };
  return stringify({
    ...config,
    dns: config.dns ?? { enable: true, listen: "127.0.0.1:0", nameserver: ["127.0.0.1:1"] },
    listeners: [...(config.listeners ?? []), kept],
    tunnels: [...(config.tunnels ?? []), tunnel],
  });
}

async function measured(text: string, prefix: readonly string[] = []): Promise<ReloadMemory> {
  const folder = mkdtempSync(join(tmpdir(), "weir-lists-"));
  try {
    writeFileSync(join(folder, "config.yaml"), withKept(text));
    writeFileSync(
      join(folder, "nodes.yaml"),
      "proxies: [{ name: n, type: socks5, server: 127.0.0.1, port: 2 }]\n",
    );
    writeFileSync(join(folder, "domains.txt"), "+.example.com\n");
    const flags = ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=8"];
    const command = [...prefix, process.execPath, ...flags, RELOAD_MEMORY];
    const args = [join(folder, "config.yaml"), String(RELOADS), folder];
    const [program, ...rest] = [...command, ...args] as [string, ...string[]];
    const { stdout } = await promisify(execFile)(program, rest);
    return JSON.parse(stdout) as ReloadMemory;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The present runtime, and one that may still be ending. */
function assertNoneKept({ first, last }: ReloadMemory): void {
  assert.equal(first.runtimes, 1);
  assert.ok(
    first["DNS engines"] === 1 && first["kernel dialers"] > 0,
    "the configuration lacks what is counted",
  );
  for (const [kind, count] of Object.entries(last)) {
    const most = 2 * first[kind as keyof typeof first];
    assert.ok(count <= most, `${count} ${kind} after ${RELOADS} reloads, ${most} at most`);
  }
}

for (const file of globSync("*.yaml", { cwd: EXAMPLES }).filter((name) => !WITH_TUN.has(name)))
  test(`${RELOADS} reloads of examples/${basename(file)}`, async () => {
    const text = readFileSync(join(EXAMPLES, file), "utf8");
    // Any port will do for what listens; nodes keep theirs.
    const ours = text.includes("\nlisteners:")
      ? /(port|external-controller): (\S+:)?\d+/g
      : /(-port|external-controller): (\S+:)?\d+/g;
    assertNoneKept(await measured(text.replaceAll(ours, "$1: $20")));
  });

for (const [name, text] of Object.entries({ LISTS, NAMES, DOORS }))
  test(`${RELOADS} reloads with ${name.toLowerCase()}`, async () => assertNoneKept(await measured(text)));

test(`${RELOADS} reloads with a TUN`, { skip: skipNetns("reload-memory", "unshare") }, async () =>
  assertNoneKept(await measured(TUN, ["unshare", "-n"])),
);
