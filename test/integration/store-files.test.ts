import assert from "node:assert/strict";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { once } from "node:events";
import { test } from "node:test";
import { MessageChannel, Worker } from "node:worker_threads";
import { StoreError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { UndecidedError } from "#store/cut-log.ts";
import { ConflictError } from "#store/kv.ts";
import { DamageError } from "#store/sealed-blob.ts";
import { LINK_BYTES } from "#store/second-file.ts";
import { ForeignFileError } from "#store/sqlite-file.ts";

const RECORDS = 60;
const PARTS = ["users"];
const valueOf = (at: number) => Buffer.from(JSON.stringify({ id: `user ${at}`, text: `${at}`.repeat(40) }));

function folder(): { readonly path: string; readonly home: string } & Disposable {
  const home = mkdtempSync(join(tmpdir(), "weir-store-"));
  return {
    home,
    path: join(home, "s.db"),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

const open = (path: string) =>
  Store.open({ path, parts: PARTS, nowMs: () => 1_785_312_000_000, log: SILENT });
const put = (at: number) => ({ part: "users", key: `k${at}`, value: valueOf(at) });

function filled(path: string): void {
  using store = open(path);
  store.commit(
    Array.from({ length: RECORDS }, (_, at) => put(at)),
    { backup: true },
  );
}

/** What no program would write: damage, where text would be a file of the user's. */
const noise = (last: number) => Buffer.from([0, 255, 254, 1, last]);

const valueIn = (store: Store, part: string, wanted: string) =>
  [...store.entries(part)].find(([key]) => key === wanted)?.[1] ?? null;
const contents = (store: Store) =>
  new Map([...store.entries("users")].map(([key, value]) => [key, value.toString()]));
const WANTED = new Map(
  Array.from({ length: RECORDS }, (_, at) => [`k${at}`, valueOf(at).toString()] as const),
);

test("what was committed is there again, and a commit writes what changed", () => {
  using at = folder();
  filled(at.path);
  {
    using store = open(at.path);
    assert.deepEqual(contents(store), WANTED);
    store.commit(
      [
        { part: "users", key: "k3", value: null },
        { part: "users", key: "new", value: valueOf(99) },
      ],
      {
        backup: false,
      },
    );
  }
  using store = open(at.path);
  assert.equal(valueIn(store, "users", "k3"), null);
  assert.deepEqual(valueIn(store, "users", "new"), valueOf(99));
  assert.equal(contents(store).size, RECORDS);
  assert.equal(store.generation, 2);
});

test("a truncated file is healed, with the broken one kept; without a backup it is refused and left alone", () => {
  using at = folder();
  filled(at.path);
  const whole = readFileSync(at.path);
  for (const size of [1, 99, 4096, whole.length >> 1, whole.length - 1]) {
    writeFileSync(at.path, whole.subarray(0, size));
    using store = open(at.path);
    assert.deepEqual(contents(store), WANTED, `${size} bytes`);
  }
  assert.ok(readdirSync(at.home).some((name) => name.startsWith("s.db.corrupt-")));
  const broken = whole.subarray(0, whole.length >> 1);
  writeFileSync(at.path, broken);
  for (const name of ["s.db.bak", "s.db.bak.sum"]) rmSync(join(at.home, name));
  assert.throws(() => open(at.path), /no backup can be read/);
  assert.deepEqual(readFileSync(at.path), broken);
});

test("a damaged or missing backup is made anew, a missing primary comes from the backup", () => {
  using at = folder();
  filled(at.path);
  writeFileSync(`${at.path}.bak`, noise(0));
  open(at.path)[Symbol.dispose]();
  rmSync(`${at.path}.bak`);
  open(at.path)[Symbol.dispose]();
  rmSync(at.path);
  using store = open(at.path);
  assert.deepEqual(contents(store), WANTED);
});

test("the newer file wins, and an older one never brings anything back", () => {
  using at = folder();
  filled(at.path);
  const old = `${at.home}/old.db`;
  copyFileSync(at.path, old);
  {
    using store = open(at.path);
    store.commit([{ part: "users", key: "k0", value: null }], { backup: true });
  }
  copyFileSync(old, at.path); // as if only the backup had been written
  rmSync(`${at.path}.sum`);
  using store = open(at.path);
  assert.equal(valueIn(store, "users", "k0"), null);
  assert.equal(store.generation, 2);
});

test("what only the primary had reaches the backup with the next commit that asks for it", () => {
  using at = folder();
  filled(at.path);
  {
    using store = open(at.path);
    store.commit([put(1000)], { backup: false });
  }
  {
    using store = open(at.path);
    store.commit([put(1001)], { backup: true });
  }
  rmSync(at.path);
  using store = open(at.path);
  assert.deepEqual(
    [valueIn(store, "users", "k1000"), valueIn(store, "users", "k1001")],
    [valueOf(1000), valueOf(1001)],
  );
});

test("a second store of the same path, a link, a file others can read, and another form are refused", () => {
  using at = folder();
  {
    using store = open(at.path);
    assert.throws(() => open(at.path), /in use by another process/);
    store.commit([put(1)], { backup: true });
  }
  chmodSync(at.path, 0o640);
  assert.throws(() => open(at.path), /others can read it/);
  chmodSync(at.path, 0o600);
  symlinkSync(at.path, join(at.home, "link.db"));
  assert.throws(() => open(join(at.home, "link.db")), /regular file/);
  const json = join(at.home, "state.json");
  writeFileSync(json, '{"version":1}', { mode: 0o600 });
  assert.throws(() => open(json), ForeignFileError);
  assert.equal(readFileSync(json, "utf8"), '{"version":1}');
  chmodSync(at.home, 0o770);
  assert.throws(() => open(at.path), /others can write/);
});

test("a file that was replaced while in use is not written to", () => {
  using at = folder();
  filled(at.path);
  const other = readFileSync(at.path);
  using store = open(at.path);
  rmSync(at.path);
  writeFileSync(at.path, other, { mode: 0o600 });
  assert.throws(() => store.commit([put(1)], { backup: false }), ConflictError);
  assert.ok(new ConflictError("") instanceof StoreError);
});

test("a store whose creation was interrupted can be created later", () => {
  using at = folder();
  const blocked = ["s.db-wal", "s.db.tmp-wal"].map((name) => join(at.home, name));
  for (const name of blocked) mkdirSync(name); // a log cannot be begun there
  assert.throws(() => open(at.path));
  for (const name of blocked) rmdirSync(name);
  using store = open(at.path);
  assert.equal(contents(store).size, 0);
});

test("a repair that cannot be finished leaves nothing beside", () => {
  using at = folder();
  filled(at.path);
  writeFileSync(`${at.path}.bak`, noise(0));
  let asked = 0;
  const nowMs = () => {
    if (++asked > 1) throw new Error("in the middle of it");
    return 1;
  };
  const names = readdirSync(at.home);
  assert.throws(() => Store.open({ path: at.path, parts: PARTS, nowMs, log: SILENT }), /in the middle/);
  assert.deepEqual(
    readdirSync(at.home),
    names.filter((name) => !name.endsWith(".db.sum")),
  );
  using store = open(at.path);
  assert.deepEqual(contents(store), WANTED);
});

test("a log that is left of another file of the name is not taken for the new one's", () => {
  using at = folder();
  {
    using store = open(at.path);
    store.commit([put(1)], { backup: true });
    copyFileSync(`${at.path}-wal`, join(at.home, "old-wal"));
  }
  for (const name of ["s.db", "s.db.bak"]) rmSync(join(at.home, name));
  copyFileSync(join(at.home, "old-wal"), `${at.path}-wal`);
  using store = open(at.path);
  assert.equal(contents(store).size, 0);
});

test("no other process can map its memory: no index lies beside a file that is open", () => {
  using at = folder();
  for (let times = 0; times < 2; times++) {
    using store = open(at.path);
    store.commit([put(times)], { backup: true });
    assert.deepEqual(
      readdirSync(at.home).filter((name) => name.endsWith("-shm")),
      [],
    );
  }
});

test("a read-only file is not called damaged, nor a lock that cannot be read taken", () => {
  using at = folder();
  const isNoDamage = (error: unknown) => error instanceof StoreError && !(error instanceof DamageError);
  filled(at.path);
  mkdirSync(`${at.path}-wal`);
  assert.throws(() => open(at.path), isNoDamage);
  rmdirSync(`${at.path}-wal`);
  writeFileSync(`${at.path}.lock`, "nonsense", { mode: 0o600 });
  assert.throws(() => open(at.path), /s\.db\.lock: a store needs this name/);
  rmSync(`${at.path}.lock`);
  using store = open(at.path);
  assert.deepEqual(contents(store), WANTED);
});

test("a database of another kind is refused and left as it is", () => {
  using at = folder();
  {
    using other = new DatabaseSync(at.path);
    other.exec("CREATE TABLE entry (bucket TEXT, key TEXT); INSERT INTO entry VALUES ('a', 'b')");
  }
  chmodSync(at.path, 0o600);
  const before = readFileSync(at.path);
  assert.throws(() => open(at.path), ForeignFileError);
  assert.deepEqual(readFileSync(at.path), before);
});

test("a first byte that was changed to a brace is damage, not a document", () => {
  using at = folder();
  filled(at.path);
  const bytes = readFileSync(at.path);
  bytes[0] = 0x7b;
  writeFileSync(at.path, bytes);
  using store = open(at.path);
  assert.deepEqual(contents(store), WANTED);
});

test("a part that an older file has not got is made, one that it had is damage", () => {
  using at = folder();
  filled(at.path);
  const parts = [...PARTS, "more"];
  {
    using store = Store.open({ path: at.path, parts, nowMs: () => 1, log: SILENT });
    store.commit([{ part: "more", key: "a", value: valueOf(1) }], { backup: true });
  }
  {
    using file = new DatabaseSync(at.path);
    file.exec("DROP TABLE more");
  }
  using store = Store.open({ path: at.path, parts, nowMs: () => 1, log: SILENT });
  assert.deepEqual(valueIn(store, "more", "a"), valueOf(1));
});

test("two damaged files of one second are both kept", () => {
  using at = folder();
  filled(at.path);
  for (let times = 0; times < 2; times++) {
    writeFileSync(at.path, noise(times), { mode: 0o600 });
    open(at.path)[Symbol.dispose]();
  }
  const kept = readdirSync(at.home).filter((name) => name.startsWith("s.db.corrupt-"));
  assert.deepEqual(new Set(kept.map((name) => readFileSync(join(at.home, name)).at(-1))), new Set([0, 1]));
});

test("a clock that steps back stops nothing", () => {
  using at = folder();
  let nowMs = 1_785_312_000_000;
  const openNow = () => Store.open({ path: at.path, parts: PARTS, nowMs: () => nowMs, log: SILENT });
  {
    using store = openNow();
    store.commit([put(1)], { backup: true });
    nowMs -= 365 * 86_400_000;
    store.commit([put(2)], { backup: true });
  }
  nowMs = -5;
  using store = openNow();
  store.commit([put(3)], { backup: true });
  assert.deepEqual([...contents(store).keys()].sort(), ["k1", "k2", "k3"]);
});

test("while only the backup takes changes they are repeated to the other one once each, and logged once", () => {
  using at = folder();
  const logged: string[] = [];
  const log = { ...SILENT, warning: (text: unknown) => void logged.push(String(text)) };
  {
    using store = Store.open({ path: at.path, parts: PARTS, nowMs: () => 1, log: log as never });
    store.commit([put(0)], { backup: true });
    renameSync(at.path, `${at.path}.away`);
    for (let nth = 0; nth < 5; nth++) store.commit([put(1), put(nth)], { backup: true });
    assert.equal(logged.length, 1, logged.join("\n"));
    renameSync(`${at.path}.away`, at.path);
    store.commit([put(9)], { backup: true });
  }
  using store = open(at.path);
  assert.deepEqual([...contents(store).keys()], ["k0", "k1", "k2", "k3", "k4", "k9"]);
});

test("a file that cannot be closed in order holds neither the other one nor the lock", () => {
  using at = folder();
  filled(at.path);
  const store = open(at.path);
  mkdirSync(`${at.path}.bak.sum`); // where the backup's last word would stand
  assert.throws(() => store[Symbol.dispose]());
  rmdirSync(`${at.path}.bak.sum`);
  using again = open(at.path);
  assert.deepEqual(contents(again), WANTED);
});

/** The other end of a link, without a file: answers one piece of work after the other. */
const SCRIPTED = `
const { receiveMessageOnPort, workerData } = require("node:worker_threads");
const words = new Int32Array(workerData.link.words);
for (const [at, failure] of workerData.failures.entries()) {
  while (Atomics.load(words, 0) === at) Atomics.wait(words, 0, at);
  receiveMessageOnPort(workerData.link.port);
  workerData.link.port.postMessage({ failure });
  Atomics.add(words, 1, 1);
  Atomics.notify(words, 1);
}`;

test("a change that the backup refuses and the primary cannot lose again ends the store", async () => {
  using at = folder();
  const { port1, port2 } = new MessageChannel();
  const words = new SharedArrayBuffer(LINK_BYTES);
  const noSpace = { kind: "other", message: "no space" };
  const failures = [null, noSpace, null, noSpace, null]; // open, what the backup gets alone, the change, its way back, close
  const workerData = { link: { port: port2, words }, failures };
  const other = new Worker(SCRIPTED, { eval: true, workerData, transferList: [port2] });
  const ended = once(other, "exit");
  {
    using store = open(at.path);
    store.writeAtOnce({ port: port1, words });
    store.commit([put(1)], { backup: true });
    renameSync(`${at.path}.bak`, `${at.path}.away`);
    assert.throws(() => store.commit([put(2)], { backup: true }), UndecidedError);
    renameSync(`${at.path}.away`, `${at.path}.bak`);
  }
  await ended;
  using store = open(at.path);
  assert.deepEqual([...contents(store).keys()], ["k1"]);
});
