/** The state file under managed users: lines of svc-admin-api §15, and what a fault of the file or the clock may cost. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, copyFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { ApiError, StoreError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { KeyValueFile } from "#store/kv.ts";
import { seal } from "#store/sealed-blob.ts";
import { Store } from "#store/backup.ts";
import { Bench, type FakeInbound, listener } from "../support/users-bench.ts";
import { PARTS } from "#users/records.ts";

const EDGE = [listener("edge", "alice", "bob")];
const fileOf = (bench: Bench, suffix = "") => join(bench.home, `state.db${suffix}`);

function names(bench: Bench): readonly string[] {
  return bench.admin.users(null).map(({ name }) => name);
}

/** The generations of both files, which are decoded whole for it. */
function generations(bench: Bench): readonly number[] {
  return ["", ".bak"].map((suffix) => {
    const file = KeyValueFile.open(fileOf(bench, suffix), PARTS);
    try {
      return file.generation;
    } finally {
      file[Symbol.dispose]();
    }
  });
}

for (const [behind, suffix] of [
  ["primary", ""],
  ["backup", ".bak"],
] as const)
  test(`svc-admin-api §15.5 ended between the writes of the two files, the ${behind} behind: the newer one is loaded`, async () => {
    using bench = new Bench();
    await bench.adopt(EDGE);
    bench.restart();
    for (const end of ["", ".sum"]) copyFileSync(fileOf(bench, suffix + end), fileOf(bench, `.old${end}`));
    await bench.adopt(EDGE);
    await bench.admin.remove(bench.first().id, bench.revision("edge"));
    const revision = bench.revision("edge");
    bench.restart();
    for (const end of ["", ".sum"]) copyFileSync(fileOf(bench, `.old${end}`), fileOf(bench, suffix + end));
    await bench.adopt(EDGE);
    assert.deepEqual(names(bench), ["bob"]);
    assert.equal(bench.revision("edge"), revision);
    bench.restart();
    const [primary, backup] = generations(bench);
    assert.equal(primary, backup);
  });

test("svc-admin-api §15.6 a damaged primary with a good backup: it starts, and after the next change both are good", async () => {
  using bench = new Bench();
  await bench.adopt(EDGE);
  bench.restart();
  writeFileSync(fileOf(bench), Buffer.of(0, 255, 254));
  await bench.adopt(EDGE);
  assert.deepEqual(names(bench), ["alice", "bob"]);
  await bench.admin.remove(bench.first().id, bench.revision("edge"));
  bench.restart();
  const [primary, backup] = generations(bench);
  assert.equal(primary, backup);
  rmSync(fileOf(bench)); // the backup by itself knows of the change, too
  await bench.adopt(EDGE);
  assert.deepEqual(names(bench), ["bob"]);
});

for (const suffix of ["", ".bak", ".lock"])
  test(`svc-admin-api §15.7 state.db${suffix} that is a link, readable by the group or of another user is refused`, async (context) => {
    using bench = new Bench();
    await bench.adopt(EDGE);
    bench.restart();
    const path = fileOf(bench, suffix);
    chmodSync(path, 0o640);
    await assert.rejects(() => bench.adopt(EDGE), /others can read it/);
    chmodSync(path, 0o600);
    if (process.geteuid?.() === 0) {
      chownSync(path, 65_534, 65_534);
      await assert.rejects(() => bench.adopt(EDGE), /belongs to user 65534/);
      chownSync(path, 0, 0);
    } else context.diagnostic("SKIP foreign owner: needs root");
    copyFileSync(path, `${path}.real`);
    rmSync(path);
    symlinkSync(`${path}.real`, path);
    await assert.rejects(() => bench.adopt(EDGE), /regular file/);
    rmSync(path);
    copyFileSync(`${path}.real`, path);
    await bench.adopt(EDGE);
    assert.deepEqual(names(bench), ["alice", "bob"]);
  });

test("svc-admin-api §15.8 a second holder of the file is refused, the first one goes on", async () => {
  using bench = new Bench();
  await bench.adopt(EDGE);
  const open = () => Store.open({ path: fileOf(bench), parts: PARTS, nowMs: () => bench.nowMs, log: SILENT });
  assert.throws(open, /in use by another process/);
  await bench.admin.remove(bench.first().id, bench.revision("edge"));
  assert.throws(open, /in use by another process/); // held for life, not from change to change
  assert.deepEqual(names(bench), ["bob"]);
});

test("svc-admin-api §15.10 a listener that is taken out and put back has its users, counters and tokens", async () => {
  using bench = new Bench();
  await bench.adopt([listener("edge", "alice"), listener("other")]);
  const alice = bench.first();
  bench.meterOf(alice.id).reserve("upload", 77);
  const before = bench.admin.user(alice.id);
  await bench.adopt([listener("other")]);
  assert.equal(bench.admin.user(alice.id), null);
  bench.restart();
  await bench.adopt([listener("edge"), listener("other")]);
  assert.equal(before?.uploadBytes, 77);
  assert.deepEqual(bench.admin.user(alice.id), before);
});

test("a file of a later version is refused, and not healed from an earlier backup", async () => {
  using bench = new Bench();
  await bench.adopt(EDGE);
  bench.restart();
  for (const suffix of ["", ".bak"]) {
    KeyValueFile.open(fileOf(bench, suffix), PARTS)[Symbol.dispose]();
    const good = `${fileOf(bench, suffix)}.good`;
    copyFileSync(fileOf(bench, suffix), good);
    laterVersion(fileOf(bench, suffix));
    await assert.rejects(() => bench.adopt(EDGE), /schema 2, this version knows 1/);
    copyFileSync(good, fileOf(bench, suffix));
  }
  await bench.adopt(EDGE);
  assert.deepEqual(names(bench), ["alice", "bob"]);
});

function laterVersion(path: string): void {
  rmSync(`${path}.sum`, { force: true });
  using file = new DatabaseSync(path);
  const version = Buffer.alloc(8);
  version.writeBigUInt64BE(2n);
  file.prepare("UPDATE meta SET value = ? WHERE key = 'schema'").run(seal("schema", version));
}

test("a change that cannot be written is undone everywhere, and the next one that can be is made", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt(EDGE)) as [FakeInbound];
  const before = bench.admin.users(null);
  const { id, revision } = bench.first();
  const token = bench.admin.user(id)?.subscriptionUrl?.split("/").at(-1) as string;
  copyFileSync(fileOf(bench, ".bak"), fileOf(bench, ".aside"));
  rmSync(fileOf(bench, ".bak"));
  const changes: readonly (() => Promise<unknown>)[] = [
    () => bench.admin.create({ inbound: "edge", name: "carol", revision }),
    () => bench.admin.update(id, { revision, enabled: false }),
    () => bench.admin.update(id, { revision, uuid: "another" }),
    () => bench.admin.resetTraffic(id, revision),
    () => bench.admin.rotateSubscription(id, revision),
    () => bench.admin.remove(id, revision),
  ];
  for (const change of changes)
    await assert.rejects(change, (error) => error instanceof ApiError && error.status === 409);
  assert.deepEqual(bench.admin.users(null), before);
  assert.equal(edge.users.length, 2);
  assert.notEqual(bench.admin.subscription(token), null);
  bench.restart();
  await bench.adopt(EDGE);
  await bench.admin.remove(id, bench.revision("edge"));
  assert.deepEqual(names(bench), ["bob"]);
});

test("a clock that steps back by years breaks nothing: revisions grow, times stay in order", async () => {
  using bench = new Bench();
  await bench.adopt(EDGE);
  const seen = [bench.revision("edge")];
  const alice = bench.first();
  for (const stepMs of [-1, -365 * 86_400_000, 5, -10 * 365 * 86_400_000]) {
    bench.nowMs += stepMs;
    await bench.admin.update(alice.id, { revision: bench.revision("edge"), name: `at ${bench.nowMs}` });
    seen.push(bench.revision("edge"));
    bench.restart();
    await bench.adopt(EDGE);
    const view = bench.admin.user(alice.id);
    assert.ok(view !== null && view.updatedAtMs >= view.createdAtMs);
    assert.equal(bench.revision("edge"), seen.at(-1));
  }
  assert.deepEqual(
    seen.toSorted((a, b) => a - b),
    [...new Set(seen)],
  );
  const fresh = await bench.admin.create({
    inbound: "edge",
    name: "early",
    revision: bench.revision("edge"),
  });
  bench.restart();
  await bench.adopt(EDGE);
  assert.equal(bench.admin.user(fresh.id)?.name, "early");
});

test("a state file of another form is refused with what would be right, and left alone", async () => {
  using bench = new Bench();
  writeFileSync(fileOf(bench), '{"version":1,"generation":7,"listeners":{},"subscriptions":{}}', {
    mode: 0o600,
  });
  await assert.rejects(
    () => bench.adopt(EDGE),
    (error) => error instanceof StoreError && error.message.includes("weir users import"),
  );
});
