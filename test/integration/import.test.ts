/** `weir import`: what panels keep of users and listeners works here as it did there. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { makeCertificate } from "../support/certificate.ts";
import { stateFolder, type AnyJson } from "../support/managed-core.ts";
import { writeMarzban, writeThreeXUi } from "../support/panel-databases.ts";
import { freePort } from "../support/peer.ts";
import { startCore } from "../support/start-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const ALICE = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";
const BOB = "0d8f6a5c-2e1f-4c3b-9a7d-5b6c7d8e9f01";
const LATER = 1_900_000_000_000;

function weir(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(WEIR, args, { encoding: "utf8", maxBuffer: 1e8 });
  return { status, stdout, stderr };
}

interface Written {
  readonly secret: string;
  readonly svc: { readonly secret: string };
  readonly listeners: readonly Readonly<Record<string, unknown>>[];
  readonly rules: readonly string[];
}
interface WrittenUser extends Readonly<Record<string, unknown>> {
  readonly name: string;
}

const configOf = (folder: string) => parse(readFileSync(join(folder, "config.yaml"), "utf8")) as Written;

function usersOf(folder: string): Readonly<Record<string, WrittenUser>> {
  const { listeners } = JSON.parse(readFileSync(join(folder, "users.json"), "utf8")) as {
    readonly listeners: Readonly<Record<string, { readonly users: readonly WrittenUser[] }>>;
  };
  const users = Object.values(listeners).flatMap((one) => one.users);
  return Object.fromEntries(users.map((user) => [user.name, user]));
}

const client = (email: string, id: string, more: object = {}) => ({
  email,
  id,
  flow: "",
  enable: true,
  ...more,
});
const WS = { network: "ws", security: "none", wsSettings: { path: "/ws" } };

test(
  "3x-ui: usage, quota, end and number of addresses of a user are the same",
  { timeout: 120_000 },
  async () => {
    using folder = stateFolder();
    const port = await freePort();
    const settings = {
      decryption: "none",
      clients: [client("alice", ALICE, { limitIp: 2 }), client("bob", BOB, { enable: false })],
    };
    writeThreeXUi(
      join(folder.path, "x-ui.db"),
      [{ protocol: "vless", port, settings, stream: WS }],
      [{ email: "alice", up: 1_000, down: 2 ** 33, total: 1e11, expiry: LATER }],
    );
    const said = weir("import", "3x-ui", join(folder.path, "x-ui.db"), "-d", folder.path);
    assert.equal(said.status, 0, said.stdout + said.stderr);
    for (const file of ["config.yaml", "users.json"])
      assert.equal(statSync(join(folder.path, file)).mode & 0o777, 0o600);
    const { svc } = configOf(folder.path);
    const text = readFileSync(join(folder.path, "config.yaml"), "utf8").replace(
      "127.0.0.1:9090",
      "127.0.0.1:0",
    );
    const seed = (home: string) => {
      const imported = weir("users", "import", join(folder.path, "users.json"), join(home, "users.db"));
      assert.equal(imported.status, 0, imported.stderr);
    };
    await using core = await startCore(text, { seed });
    const users = `http://127.0.0.1:${await core.controllerPort()}/api/admin/users`;
    const headers = { authorization: `Bearer ${svc.secret}` };
    const list = async () => ((await (await fetch(users, { headers })).json()) as AnyJson).users;
    const [alice, bob] = await list();
    assert.partialDeepStrictEqual(alice, {
      name: "alice",
      enabled: true,
      upload_bytes: 1_000,
      download_bytes: 2 ** 33,
      expires_at: LATER,
      ip_limit: 2,
      quota: { total_bytes: 1e11, reset: "never" },
    });
    assert.partialDeepStrictEqual(bob, { name: "bob", enabled: false });
  },
);

test("3x-ui: what has no equal is named with its place, and costs only itself", () => {
  using folder = stateFolder();
  const { cert, key } = makeCertificate();
  const certificates = [{ certificate: cert.trim().split("\n"), key: key.trim().split("\n") }];
  const vless = [
    client("alice", ALICE, { totalGB: 5_000, trafficReset: "monthly", expiryTime: -86_400_000 }),
    client("again", ALICE, { subId: "q1w2e3r4t5y6u7i8" }),
    client("named", "a name of 20 letters"),
    client("none", ""),
    client("Alice", BOB),
  ];
  const trojan = [
    { email: "kept", password: "kept-password", enable: true, totalGB: 10 },
    { email: "ended", password: "ended-password", enable: true, expiryTime: 1 },
  ];
  writeThreeXUi(
    join(folder.path, "x-ui.db"),
    [
      { protocol: "vless", port: 1001, settings: { clients: vless, fallbacks: [{ dest: 80 }] }, stream: WS },
      {
        protocol: "trojan",
        port: 1002,
        settings: { clients: trojan },
        stream: { network: "tcp", security: "tls", tlsSettings: { certificates } },
      },
      { protocol: "wireguard", port: 1003, settings: {} },
      { protocol: "vless", port: 1004, settings: "{", stream: WS },
      { protocol: "vmess", port: 1005, settings: {}, row: { enable: 0 } },
      { protocol: "vless", port: 1006, settings: { clients: [] }, stream: { network: "kcp" } },
    ],
    [{ email: "alice", up: 1, down: 2, total: 5_000, expiry: -86_400_000 }],
    null,
  );
  const before = Date.now();
  const said = weir("import", "3x-ui", "-d", folder.path, join(folder.path, "x-ui.db"));
  assert.equal(said.status, 3, said.stderr);
  for (const line of [
    "settings[xrayTemplateConfig].routing.rules[1].protocol: cannot be said here; the rule is left out",
    "inbounds[id=1].settings.fallbacks: fallbacks of clients without a credential are not taken",
    "inbounds[id=1].settings.clients[0] (alice): its time begins now, not with its first connection",
    "inbounds[id=1].settings.clients[1] (again): another user of the listener has the same credential; the user is left out",
    "inbounds[id=1].settings.clients[3] (none): there is no valid uuid; the user is left out",
    "inbounds[id=1].settings.clients[4] (Alice): another user of the listener has the same name; the user is left out",
    "inbounds[id=2].settings.clients[0] (kept): users of trojan have no limits: quota is not taken",
    "inbounds[id=2].settings.clients[1] (ended): its end has passed; the user is left out, because users of trojan have no limits",
    "inbounds[id=3].protocol: there is no listener like wireguard; the listener is left out",
    "inbounds[id=4]: inbounds[id=4].settings: it is no JSON; the listener and its users are left out",
    "inbounds[id=5]: it is switched off; the listener and its users are left out",
    "inbounds[id=6].streamSettings.network: kcp is no transport of our listeners; the listener is left out",
  ])
    assert.ok(said.stdout.split("\n").includes(line), `${line}\n\nin:\n${said.stdout}`);
  for (const secret of [ALICE, BOB, "kept-password", "ended-password"])
    assert.ok(!said.stdout.includes(secret));
  const { alice, named } = usersOf(folder.path);
  assert.partialDeepStrictEqual(alice, { uuid: ALICE, quota: { total_bytes: 5_000, reset: "month" } });
  assert.ok(Number(alice?.["expires_at"]) >= before + 86_400_000);
  assert.match(String(named?.["uuid"]), /^[0-9a-f]{8}-[0-9a-f]{4}-5/); // as Xray makes it of a name
  const { listeners, rules } = configOf(folder.path);
  assert.deepEqual(rules, ["GEOIP,lan,REJECT,no-resolve", "MATCH,DIRECT"]); // as the panel does unless told otherwise
  assert.deepEqual(
    listeners.map(({ name, users }) => [name, users]),
    [
      ["in-1001-vless", []],
      ["in-1002-trojan", [{ username: "kept", password: "kept-password" }]],
    ],
  );
  assert.equal(weir("users", "import", join(folder.path, "users.json"), folder.store).status, 0);
});

const XRAY = {
  inbounds: [
    {
      tag: "reality",
      listen: "127.0.0.1",
      port: 1443,
      protocol: "vless",
      settings: { clients: [], decryption: "none" },
      streamSettings: {
        network: "tcp",
        security: "reality",
        realitySettings: {
          dest: "www.example.com:443",
          serverNames: ["www.example.com"],
          privateKey: "qBJoh26vg_szsHOyPDubcXfKhLHQiyknNBmXZi482Vg",
          shortIds: ["0123456789abcdef"],
        },
      },
    },
    { tag: "ws", listen: "127.0.0.1", port: 1444, protocol: "vless", settings: {}, streamSettings: WS },
    { tag: "ss", listen: "127.0.0.1", port: 1445, protocol: "shadowsocks", settings: { network: "tcp,udp" } },
  ],
};

test("Marzban: users of the database come in by the inbounds of the Xray configuration", () => {
  using folder = stateFolder();
  const [database, xray] = [join(folder.path, "db.sqlite3"), join(folder.path, "xray_config.json")];
  const vless = { VLESS: { id: ALICE, flow: "xtls-rprx-vision" } };
  const secret = { Shadowsocks: { password: "a password", method: "chacha20-ietf-poly1305" } };
  const limited = { data_limit: 1e10, used_traffic: 12_345, expire: LATER / 1000 };
  writeMarzban(database, [
    { username: "alice", proxies: vless, excluded: ["ws"], row: limited },
    { username: "bob", proxies: { VLESS: { id: BOB }, ...secret }, row: { status: "disabled" } },
    { username: "carol", proxies: secret },
  ]);
  writeFileSync(xray, JSON.stringify(XRAY));
  assert.equal(weir("import", "marzban", database, "-d", folder.path).status, 2);
  const said = weir("import", "marzban", database, "-xray", xray, "-d", folder.path);
  assert.equal(said.status, 3, said.stdout + said.stderr);
  assert.match(
    said.stdout,
    /^users \(bob\): is a user of reality, ws, ss, and each counts and limits alone$/m,
  );
  assert.match(said.stdout, /\(bob\): it is switched off; the user is left out/);
  assert.partialDeepStrictEqual(usersOf(folder.path)["alice"], {
    uuid: ALICE,
    flow: "xtls-rprx-vision",
    enabled: true,
    download_bytes: 12_345,
    quota: { total_bytes: 1e10, reset: "never" },
    expires_at: LATER,
    created_at: Date.UTC(2025, 0, 9, 10),
  });
  const { listeners } = configOf(folder.path);
  assert.partialDeepStrictEqual(listeners[0], {
    name: "reality",
    type: "vless",
    "reality-config": { dest: "www.example.com:443", "short-id": ["0123456789abcdef"] },
  });
  assert.deepEqual(listeners[2]?.["users"], [{ username: "carol", password: "a password" }]);
  assert.equal(weir("-t", "-d", folder.path).status, 0);
  assert.match(weir("users", "import", join(folder.path, "users.json"), folder.store).stdout, /^3 users$/m);
});

test("Xray: clients and rules of a configuration with comments", () => {
  using folder = stateFolder();
  const file = join(folder.path, "xray.json");
  const clients = [{ id: ALICE, email: "alice", flow: "xtls-rprx-vision" }, { id: BOB }];
  const [reality] = XRAY.inbounds;
  const config = {
    inbounds: [{ ...reality, settings: { clients, decryption: "none" } }],
    outbounds: [{ protocol: "freedom" }, { tag: "no", protocol: "blackhole" }],
    routing: { rules: [{ type: "field", user: ["alice"], port: 25, outboundTag: "no" }] },
  };
  writeFileSync(file, `// a server\n${JSON.stringify(config)} # its end`);
  const said = weir("import", "xray", file, "-d", folder.path);
  assert.equal(said.status, 0, said.stdout + said.stderr);
  assert.deepEqual(configOf(folder.path).rules, [
    "AND,((IN-USER,alice),(DST-PORT,25)),REJECT",
    "MATCH,DIRECT",
  ]);
  const users = usersOf(folder.path);
  assert.partialDeepStrictEqual(users["alice"], { uuid: ALICE, flow: "xtls-rprx-vision", enabled: true });
  assert.partialDeepStrictEqual(users["user-2"], { uuid: BOB });
  assert.equal(weir("-t", "-d", folder.path).status, 0);
});

test("nothing is written over, nor at all with -dry-run; what is no database is refused", () => {
  using folder = stateFolder();
  const at = (name: string) => join(folder.path, name);
  const settings = { clients: [client("alice", ALICE)], decryption: "none" };
  writeThreeXUi(at("x-ui.db"), [{ protocol: "vless", port: 1001, settings, stream: WS }]);
  const before = readFileSync(at("x-ui.db"));
  assert.equal(weir("import", "3x-ui", at("x-ui.db"), "-d", folder.path, "--dry-run").status, 0);
  assert.ok(!existsSync(at("config.yaml")) && !existsSync(at("users.json")));
  writeFileSync(at("users.json"), "mine");
  const refused = weir("import", "3x-ui", at("x-ui.db"), "-d", folder.path);
  assert.deepEqual([refused.status, refused.stderr.includes("is there already")], [2, true]);
  assert.equal(readFileSync(at("users.json"), "utf8"), "mine");
  assert.ok(!existsSync(at("config.yaml")));
  assert.equal(weir("import", "3x-ui", at("x-ui.db"), "-d", folder.path, "-force").status, 0);
  assert.deepEqual(Object.keys(usersOf(folder.path)), ["alice"]);
  assert.deepEqual(readFileSync(at("x-ui.db")), before, "the database is as it was");

  writeFileSync(
    at("noise.db"),
    "no database at all, and long enough to be read as the head of one: ".repeat(9),
  );
  writeFileSync(at("cut.db"), before.subarray(0, 5_000));
  const view = new DatabaseSync(at("view.db"));
  view.exec(
    "CREATE TABLE a (b); CREATE VIEW client_traffics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n",
  );
  view.close();
  for (const name of ["noise.db", "cut.db", "missing.db"]) {
    const said = weir("import", "3x-ui", at(name), "-dry-run");
    assert.equal(said.status, 1, `${name}: ${said.stdout}`);
    assert.ok(said.stderr.length > 0 && !said.stderr.includes("    at "), said.stderr);
  }
  assert.match(
    weir("import", "3x-ui", at("view.db"), "-dry-run").stderr,
    /there is no table client_traffics/,
  );
});

test("10,000 users are taken over, each with its usage", () => {
  using folder = stateFolder();
  const numbers = Array.from({ length: 10_000 }, (_, at) => at);
  const clients = numbers.map((at) => client(`user-${at}`, ALICE.replace(/.{6}$/, `${at}`.padStart(6, "0"))));
  const traffic = numbers.map((at) => ({ email: `user-${at}`, up: at, down: 2 * at }));
  const settings = { clients, decryption: "none" };
  writeThreeXUi(
    join(folder.path, "x-ui.db"),
    [{ protocol: "vless", port: 1001, settings, stream: WS }],
    traffic,
  );
  const said = weir("import", "3x-ui", join(folder.path, "x-ui.db"), "-d", folder.path);
  assert.equal(said.status, 0, said.stdout);
  const users = usersOf(folder.path);
  assert.equal(Object.keys(users).length, 10_000);
  assert.partialDeepStrictEqual(users["user-9999"], { upload_bytes: 9_999, download_bytes: 19_998 });
  assert.match(
    weir("users", "import", join(folder.path, "users.json"), folder.store).stdout,
    /^10000 users$/m,
  );
});
