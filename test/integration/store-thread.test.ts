import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { StoreError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { ConflictError } from "#store/kv.ts";
import { DamageError } from "#store/sealed-blob.ts";
import { ForeignFileError } from "#store/sqlite-file.ts";
import { openStoreThread } from "#store/store-thread.ts";

const PARTS = ["users", "more"];

function folder(): { readonly home: string; readonly path: string } & Disposable {
  const home = mkdtempSync(join(tmpdir(), "weir-thread-"));
  const remove = () => rmSync(home, { recursive: true, force: true });
  return { home, path: join(home, "s.db"), [Symbol.dispose]: remove };
}

const optionsOf = (path: string) => ({ path, parts: PARTS, nowMs: Date.now, log: SILENT });
const put = (key: string, text: string, part = "users") => ({ part, key, value: Buffer.from(text) });

/** What is in the file, opened here. */
function contents(path: string): { readonly generation: number; readonly users: readonly string[] } {
  using store = Store.open(optionsOf(path));
  return {
    generation: store.generation,
    users: [...store.entries("users")].map(([, value]) => String(value)),
  };
}

test("what waits together is written in one transaction, in its order, and each is answered", async () => {
  using at = folder();
  const { store } = await openStoreThread(optionsOf(at.path));
  const answered: number[] = [];
  await Promise.all(
    Array.from({ length: 200 }, (_, nth) =>
      store.commit([put("same", `${nth}`)], { backup: nth % 2 === 0 }).then(() => answered.push(nth)),
    ),
  );
  assert.deepEqual(
    answered,
    Array.from({ length: 200 }, (_, nth) => nth),
  );
  await store.close();
  const { generation, users } = contents(at.path);
  assert.deepEqual(users, ["199"]);
  assert.ok(generation < 100, `${generation} transactions`);
  rmSync(at.path); // the backup has it as well
  assert.deepEqual(contents(at.path).users, ["199"]);
});

test("among many that are written together one that cannot be is refused by itself", async () => {
  using at = folder();
  const { store } = await openStoreThread(optionsOf(at.path));
  const tooLarge = { part: "users", key: "large", value: Buffer.alloc(33 * 1024 * 1024) };
  const ends = await Promise.allSettled([
    store.commit([put("a", "1")], { backup: true }),
    store.commit([put("b", "2"), tooLarge], { backup: true }),
    store.commit([put("c", "3")], { backup: true }),
  ]);
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  await store.close();
  assert.deepEqual(contents(at.path).users, ["1", "3"]);
});

test("it has the lock for life, gives every record back, and lets go at the end, in a hurry, too", async () => {
  using at = folder();
  for (const end of ["close", "closeNow"] as const) {
    const { store, records } = await openStoreThread(optionsOf(at.path));
    const known = records.get("users")?.map(([, value]) => value.toString());
    assert.deepEqual(known, end === "close" ? [] : ["first", "waits"]);
    await store.commit([put("a", "first")], { backup: true });
    await assert.rejects(openStoreThread(optionsOf(at.path)), /in use by another process/);
    const last = store.commit([put("b", "waits"), put("x", "y", "more")], { backup: true });
    await store[end]();
    assert.deepEqual(contents(at.path).users, ["first", "waits"], "when it returns all is there");
    await last;
    await assert.rejects(store.commit([put("c", "late")], { backup: true }), StoreError);
  }
});

test("errors come through the threads as what they are", async () => {
  using at = folder();
  const json = join(at.home, "state.json");
  writeFileSync(json, '{"version":1}', { mode: 0o600 });
  await assert.rejects(openStoreThread(optionsOf(json)), ForeignFileError);
  const nonsense = join(at.home, "nonsense.db");
  Store.open(optionsOf(nonsense))[Symbol.dispose]();
  truncateSync(nonsense, 4096);
  for (const suffix of [".bak", ".bak.sum"]) rmSync(nonsense + suffix);
  await assert.rejects(openStoreThread(optionsOf(nonsense)), DamageError);
  const { store } = await openStoreThread(optionsOf(at.path));
  renameSync(`${at.path}.bak`, `${at.path}.away`);
  await assert.rejects(store.commit([put("a", "1")], { backup: true }), ConflictError);
  renameSync(`${at.path}.away`, `${at.path}.bak`);
  await store.commit([put("a", "2")], { backup: true });
  await store.close();
  assert.deepEqual(contents(at.path).users, ["2"]);
});

test("messages about its files reach the log of its owner", async () => {
  using at = folder();
  const { store } = await openStoreThread(optionsOf(at.path));
  await store.close();
  writeFileSync(`${at.path}.bak`, Buffer.from([0, 255, 254]));
  const lines: string[] = [];
  const log = { ...SILENT, error: (text: unknown) => void lines.push(String(text)) };
  await (await openStoreThread({ ...optionsOf(at.path), log })).store.close();
  assert.match(lines.join("\n"), /kept as .*healed from/);
});

test("what the backup refuses is taken back in the primary, which has it already, and is never visible", async () => {
  using at = folder();
  const { store } = await openStoreThread(optionsOf(at.path));
  await store.commit([put("both", "1"), put("gone", "1")], { backup: true });
  await store.commit([put("primary only", "1")], { backup: false });
  renameSync(`${at.path}.bak`, `${at.path}.away`);
  const change = [
    put("both", "2"),
    put("primary only", "2"),
    put("new", "2"),
    { part: "users", key: "gone", value: null },
  ];
  await assert.rejects(store.commit(change, { backup: true }), ConflictError);
  renameSync(`${at.path}.away`, `${at.path}.bak`);
  const killed = join(at.home, "killed.db"); // what a kill would leave at this moment
  for (const suffix of ["", "-wal", ".bak", ".bak-wal"]) copyFileSync(at.path + suffix, killed + suffix);
  assert.deepEqual(contents(killed).users, ["1", "1", "1"]);
  await store.close();
  const { generation, users } = contents(at.path);
  assert.deepEqual(users, ["1", "1", "1"]);
  assert.equal(generation, 4, "the change and its taking back have generations of their own");
  rmSync(at.path);
  assert.deepEqual(contents(at.path).users, ["1", "1"], "the backup was behind by what it was not given");
});
