/** Subscriptions of a panel go on under the addresses that it gave out. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { itemAt } from "#lib/at.ts";
import { makeCertificate } from "../support/certificate.ts";
import { stateFolder, type AnyJson } from "../support/managed-core.ts";
import { MARZBAN_KEY, writeMarzban, writeThreeXUi } from "../support/panel-databases.ts";
import { startCore, type Core } from "../support/start-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const ALICE = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";
const BOB = "0d8f6a5c-2e1f-4c3b-9a7d-5b6c7d8e9f01";

/** Runs the import in the folder and starts what it wrote. */
async function imported(folder: string, ...words: readonly string[]): Promise<Core> {
  const run = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(WEIR, args, { encoding: "utf8" });
    assert.ok(status === 0 || status === 3, `${args[0]}: ${stdout}${stderr}`);
  };
  run("import", ...words, "-d", folder, "-public-base-url", "https://p.example");
  const text = readFileSync(join(folder, "config.yaml"), "utf8").replace("127.0.0.1:9090", "127.0.0.1:0");
  return startCore(text, {
    seed(home) {
      run("users", "import", join(folder, "users.json"), join(home, "users.db"));
      cpSync(join(folder, "former-subscriptions.json"), join(home, "former-subscriptions.json"));
    },
  });
}

/** Certificates stand in the file: a link needs one. */
function tls(): object {
  const { cert, key } = makeCertificate();
  const certificates = [{ certificate: cert.trim().split("\n"), key: key.trim().split("\n") }];
  return { network: "ws", wsSettings: { path: "/ws" }, security: "tls", tlsSettings: { certificates } };
}

const linksOf = (text: string) =>
  Buffer.from(text, "base64")
    .toString()
    .trim()
    .split("\n")
    .map((link) => /\/\/([^@]*)@/.exec(link)?.[1]);

test("3x-ui: the path of before has the links of all inbounds, and dies with its tokens", async () => {
  using folder = stateFolder();
  const client = (email: string, id: string, subId: string) => ({ email, id, subId, enable: true });
  const stream = tls();
  const inbound = (port: number, ...clients: readonly object[]) => {
    const settings = { decryption: "none", clients };
    return { protocol: "vless", port, settings, stream };
  };
  writeThreeXUi(
    join(folder.path, "x-ui.db"),
    [
      inbound(1001, client("alice", ALICE, "s1b2c3"), client("bob", BOB, "other")),
      inbound(1002, client("alice-2", ALICE, "s1b2c3")),
    ],
    [{ email: "alice", up: 5, down: 6, total: 100 }],
  );
  await using core = await imported(folder.path, "3x-ui", join(folder.path, "x-ui.db"));
  const base = `http://127.0.0.1:${await core.controllerPort()}`;
  const body = async (path: string) => (await fetch(base + path)).text();
  assert.deepEqual(linksOf(await body("/sub/s1b2c3")), [ALICE, ALICE]);
  assert.deepEqual(linksOf(await body("/sub/other")), [BOB]);
  const profile = parse(await body("/sub/s1b2c3?format=mihomo")) as { readonly proxies: readonly object[] };
  assert.equal(profile.proxies.length, 2);
  const answer = await fetch(`${base}/sub/s1b2c3?format=base64`);
  assert.match(answer.headers.get("subscription-userinfo") ?? "", /^upload=5; download=6; total=0/);
  for (const path of ["/sub/s1b2c4", "/sub/", "/clash/s1b2c3", "/sub/S1B2C3"])
    assert.equal((await fetch(base + path)).status, 404, path);

  const { svc } = parse(readFileSync(join(folder.path, "config.yaml"), "utf8")) as {
    readonly svc: { readonly secret: string };
  };
  const headers = { authorization: `Bearer ${svc.secret}`, "content-type": "application/json" };
  const { users } = (await (await fetch(`${base}/api/admin/users`, { headers })).json()) as AnyJson;
  const bob = itemAt(
    users,
    users.findIndex(({ name }) => name === "bob"),
  );
  const rotate = `${base}/api/admin/users/${bob.id}/rotate-subscription`;
  const change = JSON.stringify({ revision: bob.revision });
  assert.equal((await fetch(rotate, { method: "POST", headers, body: change })).status, 200);
  assert.equal((await fetch(`${base}/sub/other`)).status, 404);
});

test("Marzban: names that it signed lead to their user, others and revoked ones nowhere", async () => {
  using folder = stateFolder();
  const stream = tls();
  const xray = {
    inbounds: [
      { tag: "a", listen: "127.0.0.1", port: 1001, protocol: "vless", settings: {}, streamSettings: stream },
    ],
  };
  writeFileSync(join(folder.path, "xray.json"), JSON.stringify(xray));
  const revoked = { sub_revoked_at: "2025-06-01 00:00:00.5" };
  writeMarzban(join(folder.path, "db.sqlite3"), [
    { username: "alice", proxies: { VLESS: { id: ALICE } } },
    { username: "bob", proxies: { VLESS: { id: BOB } }, row: revoked },
  ]);
  const words = ["marzban", join(folder.path, "db.sqlite3"), "-xray", join(folder.path, "xray.json")];
  await using core = await imported(folder.path, ...words, "-sub-path", "feed");
  const base = `http://127.0.0.1:${await core.controllerPort()}`;
  const at = (text: string) => Date.parse(text) / 1000;
  const signed = (user: string, seconds: number, key = MARZBAN_KEY) => {
    const name = Buffer.from(`${user},${seconds}`).toString("base64url");
    return `${name}${createHash("sha256")
      .update(name + key)
      .digest("base64url")
      .slice(0, 10)}`;
  };
  const webToken = (payload: object) => {
    const parts = [{ alg: "HS256", typ: "JWT" }, payload].map((part) =>
      Buffer.from(JSON.stringify(part)).toString("base64url"),
    );
    const signature = createHmac("sha256", MARZBAN_KEY).update(parts.join(".")).digest("base64url");
    return [...parts, signature].join(".");
  };
  const body = async (name: string) => (await fetch(`${base}/feed/${name}`)).text();
  const [then, now] = [at("2025-03-01T00:00:00Z"), at("2025-07-01T00:00:00Z")];
  assert.deepEqual(linksOf(await body(signed("alice", then))), [ALICE]);
  assert.deepEqual(linksOf(await body(`${signed("alice", now)}/`)), [ALICE]);
  assert.deepEqual(linksOf(await body(signed("bob", now))), [BOB]);
  assert.deepEqual(linksOf(await body(webToken({ sub: "alice", access: "subscription", iat: then }))), [
    ALICE,
  ]);
  for (const name of [
    signed("bob", then),
    signed("alice", at("2024-01-01T00:00:00Z")),
    signed("carol", now),
    signed("alice", now, "another key"),
    webToken({ sub: "alice", access: "admin", iat: now }),
    "x",
  ])
    assert.equal((await fetch(`${base}/feed/${name}`)).status, 404, name);
});
