/** A state file that comes back older as a whole, on purpose or not. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ManagedCore, stateFolder } from "../support/managed-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));

/** The store and its backup, as a snapshot or a backup has them. */
function copyFiles(from: string, to: string): void {
  for (const name of readdirSync(from).filter((one) => /^users\.db(\.bak)?(-wal|\.sum)?$/.test(one)))
    copyFileSync(join(from, name), join(to, name));
}

interface Overview {
  readonly rollback?: { readonly seen_generation: number; readonly found_generation: number };
}

const rollbackOf = async (core: ManagedCore) =>
  ((await core.ask("GET", "/api/admin/overview")).json as unknown as Overview).rollback;

test("a restored snapshot is served and said, in log and API, until it is accepted", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  const snapshot = join(state.path, "snapshot");
  mkdirSync(snapshot, { mode: 0o700 });
  {
    await using core = await ManagedCore.start(options);
    await core.create("edge", "alice");
    assert.equal(await core.core.stop(), 0);
  }
  copyFiles(state.path, snapshot);
  {
    await using core = await ManagedCore.start(options);
    const { json } = await core.ask("GET", "/api/admin/users");
    await core.change("edge", "DELETE", `/${json.users[0]?.id}`);
    assert.equal(await rollbackOf(core), undefined);
    await core.core.stop("SIGKILL");
  }
  for (const name of ["users.db-wal", "users.db.bak-wal"]) rmSync(join(state.path, name), { force: true }); // as restoring a whole folder does
  copyFiles(snapshot, state.path);
  {
    await using core = await ManagedCore.start(options);
    await core.core.shows(/STATE HAS GONE BACK/);
    const rollback = (await rollbackOf(core)) ?? assert.fail("the overview does not say so");
    assert.ok(rollback.seen_generation > rollback.found_generation);
    await core.create("edge", "bob");
    const running = spawnSync(WEIR, ["users", "accept-rollback", state.store], { encoding: "utf8" });
    assert.match(running.stderr, /in use/);
    assert.equal(await core.core.stop(), 0);
  }
  {
    await using core = await ManagedCore.start(options);
    await core.core.shows(/was not accepted yet/);
    assert.notEqual(await rollbackOf(core), undefined);
    assert.equal(await core.core.stop(), 0);
  }
  const accepted = spawnSync(WEIR, ["users", "accept-rollback", state.store], { encoding: "utf8" });
  assert.equal(accepted.status, 0, accepted.stderr);
  await using core = await ManagedCore.start(options);
  assert.equal(await rollbackOf(core), undefined);
});
