/** `weir import` of clients' configurations: what is written starts, and what it leaves out is named. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { stateFolder } from "../support/managed-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const ALICE = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";

function weir(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(WEIR, args, { encoding: "utf8", maxBuffer: 1e8 });
  return { status, stdout, stderr };
}

const written = (folder: string) =>
  parse(readFileSync(join(folder, "config.yaml"), "utf8")) as Readonly<Record<string, unknown>>;

const SING_BOX = {
  log: { level: "warn" },
  inbounds: [
    {
      type: "vless",
      tag: "edge",
      listen: "127.0.0.1",
      listen_port: 8443,
      users: [{ name: "alice", uuid: ALICE, flow: "xtls-rprx-vision" }],
      tls: {
        enabled: true,
        server_name: "www.example.com",
        reality: {
          enabled: true,
          handshake: { server: "www.example.com", server_port: 443 },
          private_key: "qBJoh26vg_szsHOyPDubcXfKhLHQiyknNBmXZi482Vg",
          short_id: ["0123456789abcdef"],
        },
      },
    },
    { type: "mixed", tag: "local", listen: "127.0.0.1", listen_port: 8080 },
    { type: "naive", tag: "naive", listen_port: 8081 },
  ],
  outbounds: [
    { type: "direct", tag: "direct" },
    {
      type: "hysteria2",
      tag: "hy",
      server: "h.example",
      server_port: 443,
      password: "p",
      up_mbps: 100,
      obfs: { type: "salamander", password: "other" },
      tls: { enabled: true, server_name: "h.example" },
    },
    {
      type: "shadowsocks",
      tag: "ss",
      server: "h.example",
      server_port: 1,
      method: "aes-128-gcm",
      password: "p",
    },
    {
      type: "tuic",
      tag: "tuic",
      server: "h.example",
      server_port: 2,
      uuid: ALICE,
      password: "p",
      tls: { enabled: true },
    },
    {
      type: "anytls",
      tag: "any",
      server: "h.example",
      server_port: 3,
      password: "p",
      tls: { enabled: true },
    },
    { type: "vmess", tag: "vm", server: "h.example", server_port: 4, uuid: ALICE, security: "auto" },
    { type: "socks", tag: "socks", server: "10.0.0.1", server_port: 1080 },
    { type: "selector", tag: "out", outbounds: ["hy", "ss", "tuic", "any", "vm", "socks"] },
  ],
  route: { rules: [{ action: "sniff" }, { ip_is_private: true, outbound: "direct" }], final: "out" },
  dns: { servers: [{ tag: "d", type: "https", server: "1.1.1.1", detour: "out" }] },
  experimental: { clash_api: {} },
};

test("sing-box: users, nodes, rules and DNS make a configuration that starts", () => {
  using folder = stateFolder();
  const file = join(folder.path, "box.json");
  writeFileSync(file, JSON.stringify(SING_BOX));
  const said = weir("import", "sing-box", file, "-d", folder.path);
  assert.equal(said.status, 3, said.stdout + said.stderr);
  assert.deepEqual(said.stdout.split("\n").slice(0, 3), [
    "inbounds[2].type: there is no listener like naive; the listener is left out",
    "experimental: is not taken",
    "2 listeners, 1 managed users, 0 users in the configuration, 6 nodes",
  ]);
  const checked = weir("-t", "-d", folder.path);
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
  assert.doesNotMatch(checked.stdout + checked.stderr, /warning/);
  assert.deepEqual(written(folder.path)["rules"], ["GEOIP,lan,DIRECT,no-resolve", "MATCH,out"]);
  assert.match(readFileSync(join(folder.path, "users.json"), "utf8"), new RegExp(ALICE));
  assert.match(weir("users", "import", join(folder.path, "users.json"), folder.store).stdout, /^1 user$/m);
});

const MIHOMO = `# mine
mixed-port: 7890
mode: nonsense # wrong
proxies:
  - { name: a, type: socks5, server: 10.0.0.1, port: 1080 } # kept
  - { name: b, type: mieru, server: 10.0.0.1, port: 1081 }
proxy-groups:
  - { name: Out, type: select, proxies: [a, gone, b] }
rules:
  - DOMAIN,x.example,Out
  - DOMAIN,y.example,Nowhere
  - MATCH,Out
`;

test("mihomo: the text stays, without what a start would refuse", () => {
  using folder = stateFolder();
  const file = join(folder.path, "profile.yaml");
  writeFileSync(file, MIHOMO);
  const said = weir("import", "mihomo", file, "-d", folder.path);
  assert.equal(said.status, 3, said.stdout + said.stderr);
  for (const line of [
    /^mode \(line 3\): .*; it is left out$/m,
    /^proxy-groups\[0\].proxies\[1\] \(line 8\): .*; it is left out$/m,
    /^rules\[1\] \(line 11\): .*; it is left out$/m,
    /^config.yaml:\d+:\d+.*mieru/m,
  ])
    assert.match(said.stdout, line);
  const text = readFileSync(join(folder.path, "config.yaml"), "utf8");
  assert.equal(
    text,
    MIHOMO.replace("mode: nonsense # wrong\n", "")
      .replace("[a, gone, b]", "[a, b]")
      .replace("  - DOMAIN,y.example,Nowhere\n", ""),
  );
  assert.equal(weir("-t", "-d", folder.path).status, 0);
  assert.ok(!existsSync(join(folder.path, "users.json")));
});

test("share links: the nodes with a group; lines that are none are named, never shown", () => {
  using folder = stateFolder();
  const links = [
    `vless://${ALICE}@h.example:443?security=tls&sni=h.example#one,two`,
    "trojan://secret@h.example:443#t",
    "snell://secret@h.example:1#s",
    "nothing secret",
    "trojan://secret@h.example:443#t",
  ].join("\n");
  for (const [name, text] of [
    ["plain", links],
    ["base64", Buffer.from(links).toString("base64")],
  ] as const) {
    const file = join(folder.path, `${name}.txt`);
    writeFileSync(file, text);
    const said = weir("import", "share-links", file, "-d", join(folder.path), "-force");
    assert.equal(said.status, 3, said.stdout + said.stderr);
    assert.doesNotMatch(said.stdout, /secret/);
    for (const line of [3, 4]) assert.match(said.stdout, new RegExp(`^line ${line}: .*left out$`, "m"));
    const { proxies, "proxy-groups": groups } = written(folder.path);
    const names = (proxies as readonly { readonly name: string }[]).map((node) => node.name);
    assert.deepEqual(names, ["one_two", "t", "t-2"]);
    assert.equal((groups as readonly object[]).length, 2);
    assert.equal(weir("-t", "-d", folder.path).status, 0);
  }
});

test("what is no such file is refused, and nothing is written", () => {
  using folder = stateFolder();
  const file = join(folder.path, "noise");
  writeFileSync(file, "[]");
  for (const source of ["sing-box", "xray", "share-links"]) {
    const said = weir("import", source, file, "-d", folder.path);
    assert.equal(said.status, 1, `${source}: ${said.stdout}`);
    assert.ok(!existsSync(join(folder.path, "config.yaml")));
    assert.ok(!said.stderr.includes("    at "), said.stderr);
  }
});
