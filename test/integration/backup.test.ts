/** Backups of the real program under load, and a second one that goes on from them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { putStore } from "#backup/restore.ts";
import { SILENT } from "#core/log.ts";
import { STORE_PARTS } from "#host/store-parts.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { Store } from "#store/backup.ts";
import { CONTROLLER_SECRET, ManagedCore, managedConfig, stateFolder } from "../support/managed-core.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { missing } from "../support/peer.ts";
import { ofVless, Transfer } from "../support/user-traffic.ts";
import { until } from "../support/until.ts";
import { tmpfsFault } from "../support/tmpfs.ts";

const WEIR = join(import.meta.dirname, "../../bin/weir");
const EDGE = ofVless("edge", "", {});
const POLICIES = `
traffic-control:
  enabled: true
  store: policies.db
  global: { quota: { total-bytes: 100000000, window: 1d } }
`;

function weir(home: string, ...args: readonly string[]) {
  const [verb = "", ...others] = args;
  const env = { ...process.env, SKIP_SAFE_PATH_CHECK: "" };
  const { status, stdout, stderr } = spawnSync(WEIR, [verb, "-d", home, ...others], {
    env,
    encoding: "utf8",
  });
  return { status, said: stdout + stderr };
}

test("a backup under load is restored on a second instance: its users work and its counters are equal", async () => {
  using folder = stateFolder();
  const secretFile = join(folder.path, "passphrase");
  writeFileSync(secretFile, "correct horse\n");
  await using origin = await openTcpOrigin((socket) => void socket.pipe(socket));
  const echo = { host: null, ip: LOOPBACK_V4, port: origin.port };
  await using first = await ManagedCore.start({ extra: POLICIES });
  const user = await first.create("edge", "alice");
  const { token } = (
    await first.ask("POST", "/api/svc/tokens", { body: { name: "panel", scopes: ["users"] } })
  ).json as unknown as { token: string };
  const node = await EDGE.open(await first.core.port("edge"), user);
  const transfer = await (await Transfer.open(node, echo, { chunkBytes: 16_384, pauseMs: 0 })).running();
  const { home } = first.core;
  const underLoad = join(folder.path, "under-load.backup");
  assert.equal(weir(home, "backup", underLoad).status, 0);
  assert.ok(await transfer.finish());
  await until("the session has ended", async () => (await first.user(user.id)).active_connections === 0);

  const file = join(folder.path, "weir.backup");
  const made = weir(home, "backup", "-passphrase-file", secretFile, file);
  assert.equal(made.status, 0, made.said);
  assert.match(made.said, /users: users\.db \(.*\njournal: .*\npolicies: policies\.db/);
  assert.ok(!readFileSync(file).includes("alice"));
  const again = weir(home, "backup", file);
  assert.notEqual(again.status, 0, "a file that is there is not overwritten");
  const inUse = weir(home, "restore", "-replace", underLoad);
  assert.match(inUse.said, /in use by another process/);

  for (const [backup, isWhole] of [
    [underLoad, false],
    [file, true],
  ] as const) {
    // prettier-ignore
    let restored = { status: null as number | null, said: "" };
    const seed = (other: string): void => {
      restored = weir(other, "restore", "-replace", "-passphrase-file", secretFile, backup);
    };
    await using second = await ManagedCore.start({ start: { seed }, listeners: "[]\n" });
    assert.equal(restored.status, 0, restored.said);
    assert.match(restored.said, /configuration: written to .*config\.yaml/);
    assert.doesNotMatch(second.core.output(), /GONE BACK|healed from/);
    const before = await first.user(user.id);
    const after = await second.user(user.id);
    assert.equal(after.name, "alice");
    assert.ok(after.upload_bytes > 0 && after.upload_bytes <= before.upload_bytes);
    if (isWhole)
      assert.deepEqual(
        [after.upload_bytes, after.download_bytes],
        [before.upload_bytes, before.download_bytes],
      );
    assert.equal((await second.ask("GET", "/api/admin/users", { secret: token })).status, 200);
    const other = await EDGE.open(await second.core.port("edge"), user);
    const proof = await (await Transfer.open(other, echo)).running();
    assert.ok(await proof.finish());
    assert.match((await second.ask("GET", "/api/svc/audit/verify")).text, /"faults":\[\]/);
    const usedBefore = await used(first);
    assert.ok(usedBefore > 0);
    if (isWhole) assert.equal(await used(second), usedBefore + proof.bytes);
  }
});

/** Bytes in the window of the policy about everything. */
async function used(core: ManagedCore): Promise<number> {
  const status = await core.ask("GET", "/api/svc/traffic-control/status", { secret: CONTROLLER_SECRET });
  const { policies } = status.json as unknown as {
    policies: readonly { rolling: { upload_bytes: number } }[];
  };
  return policies[0]?.rolling.upload_bytes ?? 0;
}

test("what is damaged, encrypted, foreign or there already is refused with the reason, and nothing changes", async () => {
  using folder = stateFolder();
  const file = join(folder.path, "weir.backup");
  {
    await using core = await ManagedCore.start();
    const answer = await fetch(`${core.url}/api/svc/backup`, {
      headers: { authorization: `Bearer ${CONTROLLER_SECRET}` },
    });
    assert.equal(answer.status, 200);
    writeFileSync(file, await answer.bytes());
    assert.equal((await core.ask("GET", "/api/svc/backup", { secret: null })).status, 401);
  }
  const home = join(folder.path, "home");
  const bytes = readFileSync(file);
  const refused = (content: Uint8Array, reason: RegExp): void => {
    const path = join(folder.path, "other.backup");
    writeFileSync(path, content);
    const { status, said } = weir(home, "restore", path);
    assert.notEqual(status, 0);
    assert.match(said, reason);
  };
  refused(bytes.subarray(0, -100), /it is cut off: \d+ of \d+ bytes are there; nothing was changed/);
  refused(bytes.map((byte, at) => (at === 300 ? byte ^ 1 : byte)), /it is damaged/); // prettier-ignore
  refused(Buffer.from(managedConfig()), /it is no backup of weir/);
  assert.match(weir(home, "restore", "-dry-run", file).said, /nothing was changed; it can be restored/);
  assert.equal(weir(home, "restore", file).status, 0);
  assert.match(weir(home, "restore", file).said, /users\.db is there already; -replace keeps it aside/);
  const replaced = weir(home, "restore", "-replace", file);
  assert.match(replaced.said, /what was there is .*users\.db\.before-restore-\d+/);
  writeFileSync(join(home, "users.db"), "my notes\n");
  assert.match(weir(home, "restore", "-replace", file).said, /it holds text; left as it is/);
  assert.equal(readFileSync(join(home, "users.db"), "utf8"), "my notes\n");
});

test(
  "a backup for recipients of age is opened by their keys alone, also by age itself",
  { skip: missing("age", "age-keygen") },
  async () => {
    using folder = stateFolder();
    const at = (name: string) => join(folder.path, name);
    await using core = await ManagedCore.start();
    const recipients = ["one", "other"].map((name) => {
      const made = spawnSync("age-keygen", ["-o", at(name)], { encoding: "utf8" });
      return /age1\w+/.exec(made.stderr)?.[0] ?? "";
    });
    const made = (recipient: string, file: string) =>
      weir(core.core.home, "backup", "-recipient", recipient, at(file));
    assert.match(made("age1nonsense", "b").said, /age1nonsense is no X25519 recipient of age/);
    assert.equal(made(recipients.join(","), "both.age").status, 0);
    assert.equal(made(recipients[0] ?? "", "one.age").status, 0);

    const home = at("home");
    const restore = (file: string, ...words: readonly string[]) =>
      weir(home, "restore", "-dry-run", ...words, at(file));
    assert.match(restore("both.age").said, /it takes -identity-file; nothing was changed/);
    assert.match(restore("one.age", "-identity-file", at("other")).said, /recipients whose key is not given/);
    for (const key of ["one", "other"])
      assert.match(restore("both.age", "-identity-file", at(key)).said, /it can be restored/);
    const opened = spawnSync("age", ["-d", "-i", at("other"), "-o", at("plain"), at("both.age")]);
    assert.equal(opened.status, 0, String(opened.stderr));
    assert.match(restore("plain").said, /it can be restored/);
    const sealed = spawnSync("age", ["-r", recipients[0] ?? "", "-o", at("again.age"), at("plain")]);
    assert.equal(sealed.status, 0, String(sealed.stderr));
    assert.match(restore("again.age", "-identity-file", at("one")).said, /it can be restored/);
  },
);

test(
  "a medium without hard links, such as a stick with FAT, takes a backup, and the next one does not overwrite it",
  { skip: missing("strace") },
  () => {
    using folder = stateFolder();
    const path = join(folder.path, "weir.backup");
    const program = `import { writeWhole } from "#backup/write.ts";
      await writeWhole(process.env.FILE, Buffer.from(process.env.TEXT)).then(() => console.log("written"), (error) => console.log(error.code));`;
    const write = (text: string): string =>
      spawnSync(
        "strace",
        ["-f", "-o", "/dev/null", "-e", "inject=link,linkat:error=EPERM", process.execPath, "--input-type=module", "-e", program], // prettier-ignore
        {
          encoding: "utf8",
          cwd: join(import.meta.dirname, "../.."),
          env: { ...process.env, FILE: path, TEXT: text },
        },
      ).stdout.trim();
    assert.equal(write("first"), "written");
    assert.equal(write("second"), "EEXIST");
    assert.equal(readFileSync(path, "utf8"), "first");
    assert.deepEqual(readdirSync(folder.path), ["weir.backup"]);
  },
);

test("two restores within a second of the clock keep both states aside", () => {
  using folder = stateFolder();
  const path = join(folder.path, "users.db");
  const parts = STORE_PARTS.users;
  const [first] = parts;
  const restored = (text: string): string | null => {
    const records = [["a", Buffer.from(text)] as const];
    const store = { role: "users", path: "users.db", parts: [{ name: first, records }] } as const;
    return putStore({ path, store, parts }, SILENT, () => 1_000_000).aside;
  };
  const asides = ["one", "two", "three"].map(restored);
  const found = [...asides.filter((aside) => aside !== null), path].map((at) => {
    using opened = Store.open({ path: at, parts, nowMs: Date.now, log: SILENT });
    return [...opened.entries(first)].map(([, value]) => value.toString()).join();
  });
  assert.deepEqual(found, ["one", "two", "three"]);
});

test(
  "a restore that finds no room, or is to be taken back on a full disk, leaves what was there",
  { skip: tmpfsFault() },
  () => {
    const command = `mount -t tmpfs -o size=2m,mode=700 tmpfs /mnt && exec "$0" --disable-warning=ExperimentalWarning "$1"`;
    const child = join(import.meta.dirname, "../support/full-disk-restore.ts");
    const { stdout, stderr } = spawnSync("unshare", ["-rm", "sh", "-c", command, process.execPath, child], {
      encoding: "utf8",
    });
    assert.equal(stderr, "");
    assert.deepEqual(stdout.trim().split("\n").slice(-6), [
      "not restored, everything is as it was",
      "nothing is left",
      "old old old",
      "applied",
      "true",
      "failed old old old",
    ]);
  },
);
