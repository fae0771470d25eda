/** A store that comes back older as a whole, on purpose or not. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startGoverned, type GovernedCore, type Status } from "../support/governed-core.ts";
import { startCore } from "../support/start-core.ts";
import { ManagedCore, stateFolder } from "../support/managed-core.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));

/** The store and its backup, as a snapshot or a backup has them. */
function copyFiles(from: string, to: string): void {
  for (const name of readdirSync(from).filter((one) =>
    /^(users|traffic-control)\.db(\.bak)?(-wal|\.sum)?$/.test(one),
  ))
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
    const running = spawnSync(WEIR, ["accept-rollback", state.store], { encoding: "utf8" });
    assert.match(running.stderr, /in use/);
    assert.equal(await core.core.stop(), 0);
  }
  {
    await using core = await ManagedCore.start(options);
    await core.core.shows(/was not accepted yet/);
    assert.notEqual(await rollbackOf(core), undefined);
    assert.equal(await core.core.stop(), 0);
  }
  const accepted = spawnSync(WEIR, ["accept-rollback", state.store], { encoding: "utf8" });
  assert.equal(accepted.status, 0, accepted.stderr);
  await using core = await ManagedCore.start(options);
  assert.equal(await rollbackOf(core), undefined);
});

/** The same home once more, while what is to be seen of it is looked at. */
async function during<T>({ core }: GovernedCore, work: (output: () => string) => Promise<T>): Promise<T> {
  const text = readFileSync(join(core.home, "config.yaml"), "utf8");
  await using again = await startCore(text, { args: ["-d", core.home] });
  const result = await work(again.output);
  assert.equal(await again.stop(), 0);
  return result;
}

test("the store of traffic control says so, too: in log and status, until it is accepted", async () => {
  await using governed = await startGoverned("  enabled: true\n  global: { id: all }\n");
  const { home } = governed.core;
  const status = async () =>
    (await governed.call<Status & Overview>("GET", "traffic-control/status")).body.rollback;
  const snapshot = join(home, "snapshot");
  mkdirSync(snapshot, { mode: 0o700 });
  await governed.transfer(100, 1000);
  assert.equal(await status(), undefined);
  await governed.core.stop();
  copyFiles(home, snapshot);
  await during(governed, async () => void (await governed.transfer(100, 1000)));
  copyFiles(snapshot, home);
  await during(governed, async (output) => {
    assert.match(output(), /traffic-control\.db: STATE HAS GONE BACK/);
    const rollback = (await status()) ?? assert.fail("the status does not say so");
    assert.ok(rollback.seen_generation > rollback.found_generation);
  });
  const accepted = spawnSync(WEIR, ["accept-rollback", join(home, "traffic-control.db")], {
    encoding: "utf8",
  });
  assert.equal(accepted.status, 0, accepted.stderr);
  assert.equal(await during(governed, status), undefined);
});
