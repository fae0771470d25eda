/** What `weir import` has written serves, and reaches, the programs of before: v2ray with the credentials that it had. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { makeCertificate } from "../support/certificate.ts";
import { freePorts } from "../support/free-ports.ts";
import { stateFolder, type UserJson } from "../support/managed-core.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { writeMarzban, writeThreeXUi } from "../support/panel-databases.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { openRawClient, type RawClient } from "../support/raw-client.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const options = { skip: missing("v2ray"), timeout: 180_000 };
const ALICE = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";
const BOB = "0d8f6a5c-2e1f-4c3b-9a7d-5b6c7d8e9f01";
const [PASSWORD, METHOD] = ["kept password", "chacha20-ietf-poly1305"];
const LATER = 1_900_000_000_000;
const WORDS = "as it was before";
const WS = { network: "ws", security: "none", wsSettings: { path: "/ws" } };
const { cert, key } = makeCertificate();

function weir(...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(WEIR, args, { encoding: "utf8" });
  assert.ok(status === 0 || status === 3, `${args.join(" ")}: ${stdout}${stderr}`);
}

async function echoes(through: RawClient): Promise<void> {
  through.send(Buffer.from(WORDS));
  assert.equal((await through.read(WORDS.length)).toString(), WORDS);
}

interface Ports {
  readonly vless: number;
  readonly vmess: number;
  readonly trojan: number;
  readonly ss: number;
}

/** Inbounds of Xray; `hasClients` false: a panel keeps them elsewhere. */
function xrayInbounds(ports: Ports, hasClients = true) {
  const users = (...all: readonly object[]) => ({ clients: hasClients ? all : [] });
  const certificates = [{ certificate: cert.trim().split("\n"), key: key.trim().split("\n") }];
  const tls = { network: "tcp", security: "tls", tlsSettings: { certificates } };
  const vless = { ...users({ id: ALICE, email: "alice", enable: true }), decryption: "none" };
  const password = { email: "carol", enable: true, password: PASSWORD };
  return [
    { protocol: "vless", port: ports.vless, settings: vless, stream: WS },
    { protocol: "vmess", port: ports.vmess, settings: users({ id: BOB, email: "bob", enable: true }) },
    { protocol: "trojan", port: ports.trojan, settings: users(password), stream: tls },
    { protocol: "shadowsocks", port: ports.ss, settings: { method: METHOD, password: PASSWORD } },
  ];
}

const xrayText = (ports: Ports, hasClients: boolean): string =>
  JSON.stringify({
    inbounds: xrayInbounds(ports, hasClients).map(({ stream, ...rest }) => ({
      tag: rest.protocol,
      listen: "127.0.0.1",
      ...rest,
      ...(stream === undefined ? {} : { streamSettings: stream }),
    })),
    outbounds: [{ protocol: "freedom" }],
  });

function singBoxText(ports: Ports): string {
  const at = (listen_port: number) => ({ listen: "127.0.0.1", listen_port });
  const tls = { enabled: true, certificate: cert.trim().split("\n"), key: key.trim().split("\n") };
  const transport = { type: "ws", path: "/ws" };
  const inbounds = [
    { type: "vless", tag: "a", ...at(ports.vless), users: [{ name: "alice", uuid: ALICE }], transport },
    { type: "vmess", tag: "b", ...at(ports.vmess), users: [{ name: "bob", uuid: BOB }] },
    { type: "trojan", tag: "c", ...at(ports.trojan), users: [{ name: "carol", password: PASSWORD }], tls },
    { type: "shadowsocks", tag: "d", ...at(ports.ss), method: METHOD, password: PASSWORD },
  ];
  return JSON.stringify({ inbounds, outbounds: [{ type: "direct", tag: "direct" }] });
}

function marzbanUsers() {
  const row = { used_traffic: 5_000, data_limit: 1e10, expire: LATER / 1000 };
  return [
    { username: "alice", proxies: { VLESS: { id: ALICE } }, row },
    { username: "bob", proxies: { VMess: { id: BOB } } },
    { username: "carol", proxies: { Trojan: { password: PASSWORD } } },
    { username: "dora", proxies: { Shadowsocks: { password: PASSWORD, method: METHOD } } },
  ];
}

/** Writes what a program of before had, and says by which words it is imported. */
type Write = (folder: string, ports: Ports) => readonly string[];

function file(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const SERVERS: Readonly<Record<string, Write>> = {
  "3x-ui"(folder, ports) {
    const path = join(folder, "x-ui.db");
    const traffic = { email: "alice", up: 1_000, down: 4_000, total: 1e10, expiry: LATER };
    writeThreeXUi(path, xrayInbounds(ports), [traffic]);
    return ["3x-ui", path];
  },
  marzban(folder, ports) {
    writeMarzban(join(folder, "db.sqlite3"), marzbanUsers());
    return [
      "marzban",
      join(folder, "db.sqlite3"),
      "-xray",
      file(folder, "xray.json", xrayText(ports, false)),
    ];
  },
  xray: (folder, ports) => ["xray", file(folder, "xray.json", xrayText(ports, true))],
  "sing-box": (folder, ports) => ["sing-box", file(folder, "box.json", singBoxText(ports))],
};

/** v2ray's outbounds to those. */
function outboundsTo(ports: Ports) {
  const vnext = (port: number, user: object) => ({ vnext: [{ address: "127.0.0.1", port, users: [user] }] });
  const server = (port: number, more: object) => ({ servers: [{ address: "127.0.0.1", port, ...more }] });
  const tls = { network: "tcp", security: "tls", tlsSettings: { allowInsecure: true } };
  const vless = vnext(ports.vless, { id: ALICE, encryption: "none" });
  return [
    { protocol: "vless", settings: vless, streamSettings: WS },
    { protocol: "vmess", settings: vnext(ports.vmess, { id: BOB, alterId: 0, security: "auto" }) },
    { protocol: "trojan", settings: server(ports.trojan, { password: PASSWORD }), streamSettings: tls },
    { protocol: "shadowsocks", settings: server(ports.ss, { method: METHOD, password: PASSWORD }) },
  ];
}

async function throughClient(outbound: object, origin: number): Promise<void> {
  const port = await freePort();
  const settings = { address: "127.0.0.1", port: origin, network: "tcp" };
  const inbound = { listen: "127.0.0.1", port, protocol: "dokodemo-door", settings };
  const files = { "config.json": JSON.stringify({ inbounds: [inbound], outbounds: [outbound] }) };
  await using _peer = await startPeerWithFiles(["v2ray", "-config", "{}/config.json"], port, files);
  using through = await openRawClient(port);
  await echoes(through);
}

for (const [source, write] of Object.entries(SERVERS))
  test(
    `${source}: clients of before get through with their credentials, and what they used goes on`,
    options,
    async () => {
      using folder = stateFolder();
      const [vless = 0, vmess = 0, trojan = 0, ss = 0] = await freePorts(4);
      const ports = { vless, vmess, trojan, ss };
      weir("import", ...write(folder.path, ports), "-d", folder.path);
      const text = readFileSync(join(folder.path, "config.yaml"), "utf8");
      const seed = (home: string) =>
        weir("users", "import", join(folder.path, "users.json"), join(home, "users.db"));
      await using core = await startCore(text.replace("127.0.0.1:9090", "127.0.0.1:0"), { seed });
      await using origin = await openTcpOrigin(echo);
      for (const outbound of outboundsTo(ports)) await throughClient(outbound, origin.port);

      const { svc } = parse(text) as { readonly svc: { readonly secret: string } };
      const users = `http://127.0.0.1:${await core.controllerPort()}/api/admin/users`;
      const answer = await fetch(users, { headers: { authorization: `Bearer ${svc.secret}` } });
      const all = ((await answer.json()) as { readonly users: readonly UserJson[] }).users;
      const alice = all.find(({ name }) => name === "alice");
      const isPanel = source === "3x-ui" || source === "marzban";
      const before = isPanel ? 5_000 : 0;
      const used = (alice?.upload_bytes ?? 0) + (alice?.download_bytes ?? 0);
      assert.equal(used, before + 2 * WORDS.length);
      if (isPanel) assert.partialDeepStrictEqual(alice, { expires_at: LATER, quota: { total_bytes: 1e10 } });
    },
  );

/** What a client had: its nodes with a group, by which rules go. */
const CLIENTS: Readonly<Record<string, Write>> = {
  mihomo(folder, ports) {
    const nodes = [
      `{ name: vless, type: vless, server: 127.0.0.1, port: ${ports.vless}, uuid: ${ALICE}, network: ws, ws-opts: { path: /ws } }`,
      `{ name: vmess, type: vmess, server: 127.0.0.1, port: ${ports.vmess}, uuid: ${BOB}, alterId: 0, cipher: auto }`,
      `{ name: trojan, type: trojan, server: 127.0.0.1, port: ${ports.trojan}, password: ${PASSWORD}, skip-cert-verify: true }`,
      `{ name: ss, type: ss, server: 127.0.0.1, port: ${ports.ss}, cipher: ${METHOD}, password: ${PASSWORD} }`,
    ];
    const names = ["vless", "vmess", "trojan", "ss"];
    const text = `external-controller: 127.0.0.1:9090
mixed-port: 7890
proxies:
${nodes.map((node) => `  - ${node}`).join("\n")}
proxy-groups: [{ name: Proxy, type: select, proxies: [${names.join(", ")}] }]
rules: ["MATCH,Proxy"]
`;
    return ["mihomo", file(folder, "profile.yaml", text)];
  },
  "share-links"(folder, ports) {
    const vmess = { v: "2", ps: "vmess", add: "127.0.0.1", port: ports.vmess, id: BOB, aid: 0, net: "tcp" };
    const links = [
      `vless://${ALICE}@127.0.0.1:${ports.vless}?type=ws&path=%2Fws&security=none#vless`,
      `vmess://${Buffer.from(JSON.stringify(vmess)).toString("base64")}`,
      `trojan://${encodeURIComponent(PASSWORD)}@127.0.0.1:${ports.trojan}?allowInsecure=1#trojan`,
      `ss://${Buffer.from(`${METHOD}:${PASSWORD}`).toString("base64url")}@127.0.0.1:${ports.ss}#ss`,
    ];
    return ["share-links", file(folder, "links.txt", links.join("\n"))];
  },
};

for (const [source, write] of Object.entries(CLIENTS))
  test(`${source}: each node reaches the server of before`, options, async () => {
    using folder = stateFolder();
    const [vless = 0, vmess = 0, trojan = 0, ss = 0, door = 0] = await freePorts(5);
    const ports = { vless, vmess, trojan, ss };
    weir("import", ...write(folder.path, ports), "-d", folder.path);
    const imported = readFileSync(join(folder.path, "config.yaml"), "utf8");
    const files = { "config.json": xrayText(ports, true) };
    await using _server = await startPeerWithFiles(["v2ray", "-config", "{}/config.json"], ss, files);
    await using origin = await openTcpOrigin(echo);
    for (const node of ["vless", "vmess", "trojan", "ss"]) {
      const text = imported
        .replace(/^mixed-port: \d+$/m, `mixed-port: ${door}`)
        .replace(/^external-controller: .*$/m, "")
        .replace(/MATCH,[^"\n]*/, `MATCH,${node}`);
      await using _core = await startCore(text);
      const { client, status } = await socksConnect(door, "127.0.0.1", origin.port);
      using through = client;
      assert.equal(status, 0, node);
      await echoes(through);
    }
  });
