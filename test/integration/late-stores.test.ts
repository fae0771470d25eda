/** Files that cannot be opened at the start for a reason that passes: everything else runs, and they are tried again. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lockStore } from "#store/file-safety.ts";
import { CONTROLLER_SECRET, ManagedCore } from "../support/managed-core.ts";
import { until } from "../support/until.ts";

test("a state file in the hands of another process: 500 with the reason and no path, then its users", async () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-late-"));
  try {
    const store = join(folder, "deep", "users.db");
    mkdirSync(join(folder, "deep"), { mode: 0o700 });
    {
      await using before = await ManagedCore.start({ store, folder });
      await before.create("edge", "alice");
      assert.equal(await before.core.stop(), 0);
    }
    const lock = lockStore(store);
    await using core = await ManagedCore.start({ store, folder });
    await core.core.shows(
      /managed listeners admit no client: .*in use by another process; it is tried again/,
    );
    const refused = await core.ask("GET", "/api/admin/users");
    assert.equal(refused.status, 500);
    assert.match(refused.text, /users\.db: in use by another process/);
    assert.doesNotMatch(refused.text, /deep/);
    assert.equal((await core.ask("GET", "/api/admin/users", { secret: null })).status, 401);
    const configs = await core.ask("GET", "/configs", { secret: CONTROLLER_SECRET });
    assert.equal(configs.status, 200, "everything else runs");
    lock[Symbol.dispose]();
    await until(
      "the users are there",
      async () => (await core.ask("GET", "/api/admin/users")).status === 200,
    );
    const { json } = await core.ask("GET", "/api/admin/users");
    assert.deepEqual(
      json.users.map(({ name }) => name),
      ["alice"],
    );
    await core.create("edge", "bob");
    assert.equal(await core.core.stop(), 0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
