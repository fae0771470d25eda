/** A backup put in force through the Controller of the real program. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openBackup, sealBackup } from "#backup/sealing.ts";
import { decodeContents, encodeContents } from "#backup/contents.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { freePorts } from "../support/free-ports.ts";
import { CONTROLLER_SECRET, ManagedCore, stateFolder, type AnyJson } from "../support/managed-core.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { missing } from "../support/peer.ts";
import { ofVless, Transfer } from "../support/user-traffic.ts";
import { until } from "../support/until.ts";

const EDGE = ofVless("edge", "", {});

async function backupOf(core: ManagedCore): Promise<Buffer> {
  const headers = { authorization: `Bearer ${CONTROLLER_SECRET}` };
  return Buffer.from(await (await fetch(`${core.url}/api/svc/backup`, { headers })).bytes());
}

async function send(core: ManagedCore, path: string, file: Uint8Array, key = "", secret = CONTROLLER_SECRET) {
  const headers = {
    authorization: `Bearer ${secret}`,
    "content-type": "application/octet-stream",
    ...(key === "" ? {} : { "weir-backup-key": Buffer.from(key).toString("base64") }),
  };
  const answer = await fetch(core.url + path, { method: "POST", headers, body: Buffer.from(file) });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

/** A port that is known before and after a restart. */
async function startCore(args: readonly string[] = []) {
  const [port, edge] = (await freePorts(2)) as [number, number];
  const listeners = `  - {name: edge, type: vless, listen: 127.0.0.1, port: ${edge}, allow-insecure: true, users: []}\n`;
  const core = await ManagedCore.start({
    controller: `127.0.0.1:${port}`,
    managed: ["edge"],
    listeners,
    start: { args },
  });
  return { core, edge };
}

async function putInForce(core: ManagedCore, file: Buffer, key = ""): Promise<void> {
  const looked = await send(core, "/api/svc/restore/check", file, key);
  assert.equal(looked.status, 200, JSON.stringify(looked.json));
  const from = core.core.output().length;
  const put = await send(core, `/api/svc/restore?sum=${String(looked.json["sum"])}`, file, key);
  assert.deepEqual([put.status, put.json], [200, { status: "restarting" }]);
  await core.core.shows(/msg="weir .* is running/, from);
}

const names = async (core: ManagedCore): Promise<readonly string[]> =>
  (await core.ask("GET", "/api/admin/users")).json.users.map(({ name }) => name);

async function isReported(core: ManagedCore, type: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${CONTROLLER_SECRET}` };
  const { body, status } = await fetch(`${core.url}/api/svc/events?after=0`, { headers });
  assert.equal(status, 200);
  let events = "";
  for await (const chunk of body ?? []) {
    events += Buffer.from(chunk).toString();
    if (events.includes(`event: ${type}`)) return true;
  }
  return false;
}

async function relays(edge: number, user: AnyJson): Promise<boolean> {
  await using origin = await openTcpOrigin((socket) => void socket.pipe(socket));
  const node = await EDGE.open(edge, user);
  const echo = { host: null, ip: LOOPBACK_V4, port: origin.port };
  const transfer = await (await Transfer.open(node, echo)).running();
  return await transfer.finish();
}

test("users of a backup work again after a restore by the Controller; what was there is kept aside", async () => {
  const { core, edge } = await startCore();
  await using _core = core;
  const alice = await core.create("edge", "alice");
  const file = await backupOf(core);
  await core.change("edge", "DELETE", `/${alice.id}`);
  await core.create("edge", "bob");
  const { token } = (await core.ask("POST", "/api/svc/tokens", { body: { name: "later", scopes: ["read"] } }))
    .json as unknown as { token: string };
  core.core.write(`${readFileSync(join(core.core.home, "config.yaml"), "utf8")}# later\n`);

  const { status, json } = await send(core, "/api/svc/restore/check", file);
  assert.equal(status, 200, JSON.stringify(json));
  assert.deepEqual(json["lost"], { listeners: [], users: ["bob"], tokens: ["later"] });
  assert.deepEqual([json["users"], json["same_configuration"], json["other_sign_in"]], [1, false, false]);
  assert.deepEqual(await names(core), ["bob"], "looking changes nothing");

  await putInForce(core, file);
  await until("the restored users are there", async () => (await names(core)).join() === "alice");
  assert.ok(await relays(edge, alice));
  assert.equal((await core.ask("GET", "/version", { secret: token })).status, 401);
  const { home } = core.core;
  assert.doesNotMatch(readFileSync(join(home, "config.yaml"), "utf8"), /# later/);
  assert.match(readFileSync(join(home, "config.yaml.weir-1"), "utf8"), /# later/);
  const files = readdirSync(home);
  assert.ok(
    files.some((name) => /^users\.db\.before-restore-\d+$/.test(name)),
    files.join(),
  );
  assert.ok(!files.some((name) => name.includes("restoring") || name.startsWith("restore.")), files.join());
  const audit = (await core.ask("GET", "/api/svc/audit?action=restore")).json as unknown as {
    entries: readonly { action: string; actor: { name: string } }[];
  };
  assert.deepEqual(
    audit.entries.map(({ action, actor }) => [action, actor.name]),
    [["restore", "controller"]],
  );
  assert.match((await core.ask("GET", "/api/svc/audit/verify")).text, /"faults":\[\]/);
  assert.ok(await isReported(core, "program.restored"));
});

test("a backup that cannot be restored is refused with the reason, and nothing changes", async () => {
  const { core } = await startCore();
  await using _core = core;
  await core.create("edge", "alice");
  const file = await backupOf(core);
  const before = readdirSync(core.core.home);
  const refused = async (content: Uint8Array, reason: RegExp, key = "", status = 400) => {
    for (const path of ["/api/svc/restore/check", `/api/svc/restore?sum=${"0".repeat(64)}`]) {
      const answer = await send(core, path, content, key);
      assert.equal(answer.status, status, JSON.stringify(answer.json));
      assert.match(String(answer.json["message"]), reason);
    }
  };
  await refused(file.subarray(0, -100), /it is cut off: \d+ of \d+ bytes are there; nothing was changed/);
  await refused(Buffer.from(file.toString("latin1").replace("weir-backup 1", "weir-backup 2"), "latin1"), /it has form 2, and this version reads form 1/); // prettier-ignore
  await refused(Buffer.from("hello"), /it is no backup of weir/);
  await refused(Buffer.alloc(64 * 1024 * 1024 + 1), /more than 64 MiB is restored by weir restore/, "", 413);
  const contents = decodeContents(await openBackup(file, null));
  const sealed = await sealBackup(encodeContents(contents), "correct horse");
  await refused(sealed, /the passphrase is not the one/, "wrong horse");
  await refused(sealed, /it is encrypted; it takes its passphrase/);
  const damaged = { ...contents, configuration: "mixed-port: hello\n" };
  await refused(await sealBackup(encodeContents(damaged), null), /its configuration has errors here/);
  const [users] = contents.stores;
  assert.ok(users !== undefined);
  const strange = { ...users, parts: [...users.parts, { name: "future", records: [] }] };
  const later = await sealBackup(encodeContents({ ...contents, stores: [strange] }), null);
  const looked = await send(core, "/api/svc/restore/check", later);
  assert.match(JSON.stringify(looked.json), /a table future of users, which this version does not know/);
  const outside = { ...contents, stores: [{ ...users, path: "/proc/users.db" }] };
  const looking = await send(core, "/api/svc/restore/check", await sealBackup(encodeContents(outside), null));
  assert.match(JSON.stringify(looking.json), /safe path|SAFE_PATHS/i);
  const other = await send(core, `/api/svc/restore?sum=${"0".repeat(64)}`, file);
  assert.match(String(other.json["message"]), /another file than the one that was looked at/);
  const { token } = (await core.ask("POST", "/api/svc/tokens", { body: { name: "all", scopes: ["admin"] } }))
    .json as unknown as { token: string };
  assert.equal((await send(core, "/api/svc/restore/check", file, "", token)).status, 403);
  assert.deepEqual(await names(core), ["alice"]);
  assert.deepEqual(readdirSync(core.core.home), before);
  await putInForce(core, sealed, "correct horse");
  assert.deepEqual(await names(core), ["alice"]);
});

test("a start that fails by the restored state is taken back, and weir runs by what it had", async () => {
  using folder = stateFolder();
  const hook = join(folder.path, "hook");
  writeFileSync(hook, "");
  const { core } = await startCore(["-post-up", `sh ${hook}`]);
  await using _core = core;
  writeFileSync(hook, `test ! -d ${join(core.core.home, "restore.applied")}`);
  await core.create("edge", "alice");
  const file = await backupOf(core);
  await core.create("edge", "bob");
  core.core.write(`${readFileSync(join(core.core.home, "config.yaml"), "utf8")}# later\n`);
  const { json } = await send(core, "/api/svc/restore/check", file);
  const from = core.core.output().length;
  await send(core, `/api/svc/restore?sum=${String(json["sum"])}`, file);
  await core.core.shows(/restore: not done, everything is as it was: post-up/, from);
  await until("it runs again", async () => (await names(core).catch(() => [])).join() === "alice,bob");
  assert.match(readFileSync(join(core.core.home, "config.yaml"), "utf8"), /# later/);
  const files = readdirSync(core.core.home);
  assert.ok(!files.some((name) => /restor/.test(name)), files.join());
  const isSaid = async (): Promise<boolean> =>
    /post-up/.test((await core.ask("GET", "/api/svc/audit?action=restore.failed")).text);
  await until("the audit log has it, which is written while it runs already", isSaid);
});

test("a backup of age is opened by its key alone", { skip: missing("age", "age-keygen") }, async () => {
  const { core } = await startCore();
  await using _core = core;
  await core.create("edge", "alice");
  const made = spawnSync("age-keygen", [], { encoding: "utf8" });
  const recipient = /age1\w+/.exec(made.stdout + made.stderr)?.[0] ?? "";
  const plain = join(core.core.home, "plain");
  writeFileSync(plain, await backupOf(core));
  const { stdout: file } = spawnSync("age", ["-r", recipient, plain]);
  assert.match(JSON.stringify((await send(core, "/api/svc/restore/check", file)).json), /the key of one of them/); // prettier-ignore
  assert.match(JSON.stringify((await send(core, "/api/svc/restore/check", file, "hello")).json), /AGE-SECRET-KEY-1/); // prettier-ignore
  await putInForce(core, file, made.stdout);
  assert.deepEqual(await names(core), ["alice"]);
});
