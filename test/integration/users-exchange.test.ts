/** `weir users export` and `import`: all that is known of a user goes through, and no file is taken for another. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PARTS } from "#governance/store.ts";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { type AnyJson, ManagedCore, stateFolder } from "../support/managed-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));

function users(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(WEIR, ["users", ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

const LIMITS = {
  quota: { total_bytes: 5_000_000, window: "30d" },
  expires_at: Date.now() + 1e9,
  upload_bps: 1e6,
  download_bps: 2e6,
  connection_limit: 50,
  ip_limit: 3,
};
const REMARKS = { note: "knows the baker", labels: ["paid", "Tehran"] };

test("a user with every limit, a note and labels goes through a document into another file, and is the same there", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  let before: AnyJson;
  {
    await using core = await ManagedCore.start(options);
    const { id } = await core.create("edge", "alice", { ...LIMITS, ...REMARKS });
    before = await core.user(id);
    assert.deepEqual({ note: before.note, labels: before.labels }, REMARKS);
  }
  const exported = users("export", state.store);
  assert.equal(exported.status, 0, exported.stderr);
  const [document, fresh] = [join(state.path, "users.json"), join(state.path, "fresh.db")];
  writeFileSync(document, exported.stdout, { mode: 0o600 });
  const imported = users("import", document, fresh);
  assert.deepEqual([imported.status, imported.stdout], [0, "1 user\n"]);
  assert.deepEqual(listenersOf(users("export", fresh).stdout), listenersOf(exported.stdout));
  await using core = await ManagedCore.start({ ...options, store: fresh });
  const { revision: _before, applied_revision: _applied, ...was } = before as AnyJson & Applied;
  const {
    revision: _after,
    applied_revision: _now,
    ...is
  } = (await core.user(before.id)) as AnyJson & Applied;
  assert.deepEqual(is, was);
});

interface Applied {
  readonly applied_revision: number;
}

test("a document with a user whom the listener would refuse is refused whole, before it costs the others their access", () => {
  using folder = stateFolder();
  const [document, fresh] = [join(folder.path, "users.json"), join(folder.path, "fresh.db")];
  const user = {
    id: "7d27a52f-4539-4ac1-9bd4-b8e05e53c197",
    name: "alice",
    enabled: true,
    upload_bytes: 0,
    download_bytes: 0,
    traffic_generation: 1,
    created_at: 1,
    updated_at: 1,
  };
  const refusal = (protocol: string, more: object) => {
    const edge = {
      id: "1",
      name: "edge",
      protocol,
      revision: 1,
      applied_revision: 0,
      users: [{ ...user, ...more }],
    };
    const subscriptions = { [user.id]: "A".repeat(43) };
    writeFileSync(document, JSON.stringify({ version: 1, listeners: { edge }, subscriptions }), {
      mode: 0o600,
    });
    return users("import", document, fresh).stderr;
  };
  const vless = { uuid: "6d27a52f-4539-4ac1-9bd4-b8e05e53c197" };
  assert.match(
    refusal("vless", { ...vless, flow: "xtls-rprx-direct" }),
    /VLESS has no flow xtls-rprx-direct/,
  );
  assert.match(refusal("anytls", { password: "p", flow: "xtls-rprx-vision" }), /AnyTLS has no flow/);
  assert.match(
    refusal("vless", { ...vless, inbound: "side" }),
    /user 7d27\S+: it is said to be of listener side/,
  );
  assert.equal(refusal("vless", { ...vless, flow: "xtls-rprx-vision", inbound: "edge" }), "");
});

const listenersOf = (text: string) => (JSON.parse(text) as { readonly listeners: unknown }).listeners;

test("what others can read, and what is no state file of users, is refused and left as it is", () => {
  using folder = stateFolder();
  const at = (name: string) => join(folder.path, name);
  const document = at("users.json");
  writeFileSync(document, JSON.stringify({ version: 1, listeners: {}, subscriptions: {} }), { mode: 0o600 });
  assert.equal(users("import", document, at("mine.db")).status, 0);

  chmodSync(at("mine.db"), 0o640);
  assert.match(users("export", at("mine.db")).stderr, /others can read it; mode 0600 would be right/);

  const foreign = new DatabaseSync(at("foreign.db"));
  foreign.exec("CREATE TABLE things (name TEXT)");
  foreign.close();
  chmodSync(at("foreign.db"), 0o600);
  Store.open({ path: at("policies.db"), parts: PARTS, nowMs: () => 1, log: SILENT })[Symbol.dispose]();
  writeFileSync(at("noise.db"), "no database at all", { mode: 0o600 });
  const refusals = [
    [document, /weir users import/],
    [at("foreign.db"), /database of another kind/],
    [at("policies.db"), /database of another kind/],
    [at("noise.db"), /holds text; left as it is/],
  ] as const;
  for (const [path, why] of refusals) {
    const before = readFileSync(path);
    for (const said of [users("export", path), users("import", document, path)]) {
      assert.notEqual(said.status, 0, `${path}: ${said.stdout}`);
      assert.match(said.stderr, why);
      assert.equal(said.stdout, "");
    }
    assert.deepEqual(readFileSync(path), before, `${path} is as it was`);
  }
});
