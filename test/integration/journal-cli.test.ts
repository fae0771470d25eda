/** Tokens and the audit log of the real program, by its command line while it runs and while it does not. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { unseal } from "#store/sealed-blob.ts";
import { ADMIN_SECRET, CONTROLLER_SECRET, ManagedCore, stateFolder } from "../support/managed-core.ts";

const weir = join(import.meta.dirname, "../../bin/weir");

function command(folder: string, home: string, ...args: readonly string[]) {
  const env = { ...process.env, SAFE_PATHS: folder, CLASH_HOME_DIR: home };
  const { status, stdout, stderr } = spawnSync(weir, args, { env, encoding: "utf8" });
  return { status, stdout: stdout.trim(), stderr };
}

test("weir token and weir audit, on a running weir and on its file", async () => {
  using state = stateFolder();
  const { path: folder, store } = state;
  await using core = await ManagedCore.start({ folder, store });
  const { home } = core.core;
  const weirIn = (...args: readonly string[]) => command(folder, home, ...args);

  const made = weirIn("token", "create", "-scopes", "users", "-listener", "edge", "-expires", "1h", "panel");
  assert.equal(made.status, 0, made.stderr);
  const token = made.stdout;
  assert.match(token, /^weir_[0-9a-f]{12}_[\w-]{43}$/);
  const asToken = await core.ask("GET", "/api/admin/users", { secret: token });
  assert.equal(asToken.status, 200, asToken.text);
  assert.equal((await core.ask("GET", "/version", { secret: token })).status, 403);
  assert.equal((await core.ask("GET", "/api/svc/tokens", { secret: token })).status, 403);
  assert.equal((await core.ask("GET", "/api/svc/tokens", { secret: CONTROLLER_SECRET })).status, 401);
  await core.create("edge", "alice");
  assert.match(weirIn("token", "list").stdout, /panel {2}users {2}listener edge {2}expires/);
  const whole = weirIn("audit", "verify");
  assert.match(whole.stdout, /^entries 1 to 2, whole, head 2:[0-9a-f]{64}$/);
  const [, head = ""] = /head (\S+)/.exec(whole.stdout) ?? [];
  const exported = weirIn("audit", "export").stdout;
  assert.ok(
    !exported.includes(token) && !exported.includes(ADMIN_SECRET) && !core.core.output().includes(token),
  );
  assert.deepEqual(
    exported.split("\n").map((line) => (JSON.parse(line) as { action: string }).action),
    ["token.create", "user.create"],
  );

  await core.core.stop("SIGKILL");
  const [, id = ""] = token.split("_");
  assert.equal(weirIn("token", "revoke", id).stdout, `${id} is revoked`);
  assert.match(weirIn("audit", "verify", "-head", head).stdout, /^entries 1 to 3, whole/);
  const file = join(folder, "export.ndjson");
  writeFileSync(file, `${weirIn("audit", "export").stdout.split("\n").toSpliced(1, 1).join("\n")}\n`);
  const cut = weirIn("audit", "verify", file);
  assert.equal(cut.status, 1);
  assert.match(cut.stdout, /^entry 3: it follows entry 1; 1 between them are gone/);
  assert.equal(weirIn("token", "create", "-scopes", "everything", "x").status, 2);

  await using again = await ManagedCore.start({ folder, store });
  assert.equal((await again.ask("GET", "/api/admin/users", { secret: token })).status, 401);
  assert.equal((await again.ask("GET", "/api/svc/audit/verify")).status, 200);
});

test("the journal holds no token, in no file", async () => {
  using state = stateFolder();
  const { path: folder, store } = state;
  await using core = await ManagedCore.start({ folder, store });
  const body = { name: "all", scopes: ["admin"] };
  const { token } = (await core.ask("POST", "/api/svc/tokens", { body })).json as unknown as {
    token: string;
  };
  assert.equal((await core.ask("PATCH", "/configs", { secret: token, body: { mode: "rule" } })).status, 204);
  await core.core.stop();
  using database = new DatabaseSync(`${store}.journal`, { readOnly: true });
  for (const part of ["tokens", "audit", "heads"])
    for (const { key, value } of database.prepare(`SELECT key, value FROM ${part}`).iterate())
      assert.ok(!unseal(String(key), value as Uint8Array).includes(token.slice(-43)), part);
  assert.ok(!core.core.output().includes(token));
});
