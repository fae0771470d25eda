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
import { zstdDecompressSync } from "node:zlib";
import { StoreError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { Store, UndecidedError } from "./backup.ts";
import { crc32c } from "./crc32c.ts";
import { ConflictError, ForeignFileError } from "./kv.ts";
import { DamageError, seal, unseal } from "./sealed-blob.ts";
import { LINK_BYTES } from "./second-file.ts";

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

const contents = (store: Store) =>
  new Map([...store.entries("users")].map(([key, value]) => [key, value.toString()]));
const WANTED = new Map(
  Array.from({ length: RECORDS }, (_, at) => [`k${at}`, valueOf(at).toString()] as const),
);

test("CRC-32C has its check value", () => {
  assert.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
  assert.equal(crc32c(Buffer.from("1234"), Buffer.from("56789")), 0xe3069283);
});

test("CRC-32C: the examples of RFC 3720 B.4", () => {
  const rising = Buffer.from(Array.from({ length: 32 }, (_, at) => at));
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa);
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43);
  assert.equal(crc32c(rising), 0x46dd794e);
  assert.equal(crc32c(rising.toReversed()), 0x113fdb5c);
});

test("a sealed blob opens under its own key only, and every changed or cut byte shows", () => {
  const original = valueOf(7);
  const blob = seal("k7", original);
  assert.deepEqual(unseal("k7", blob), original);
  assert.throws(() => unseal("k8", blob), DamageError);
  for (let at = 0; at < blob.length; at++) {
    assert.throws(() => unseal("k7", blob.subarray(0, at)), DamageError);
    const changed = Buffer.from(blob);
    changed[at] = (changed[at] as number) ^ 0x40;
    assert.throws(() => unseal("k7", changed), DamageError, `byte ${at}`);
  }
});

test("a short value is a Zstandard frame as well, which anybody can unpack", () => {
  for (const size of [0, 1, 2, 127, 128, 255, 256, 257, 5000]) {
    const original = Buffer.alloc(size);
    crypto.getRandomValues(original);
    const blob = seal("k", original);
    assert.equal(blob.toString("latin1", 0, 4), "TCZ1");
    assert.deepEqual(zstdDecompressSync(blob.subarray(12)), original, `${size} bytes`);
    assert.deepEqual(unseal("k", blob), original);
  }
  assert.ok(seal("k", Buffer.alloc(5000)).length < 100, "and a long one is compressed");
});

test("a plain blob is read, and an enormous length is refused before anything is unpacked", () => {
  const original = valueOf(1);
  const blob = Buffer.alloc(12);
  blob.write("TCR1", "latin1");
  blob.writeUInt32BE(original.length, 4);
  blob.writeUInt32BE(crc32c(Buffer.from("k\0"), original), 8);
  assert.deepEqual(unseal("k", Buffer.concat([blob, original])), original);
  const bomb = seal("k", Buffer.alloc(1024));
  bomb.writeUInt32BE(0x7fffffff, 4);
  assert.throws(() => unseal("k", bomb), DamageError);
});

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
  assert.equal(store.get("users", "k3"), null);
  assert.deepEqual(store.get("users", "new"), valueOf(99));
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
  writeFileSync(`${at.path}.bak`, "nonsense");
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
  assert.equal(store.get("users", "k0"), null);
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
    [store.get("users", "k1000"), store.get("users", "k1001")],
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
  assert.deepEqual(store.get("more", "a"), valueOf(1));
});

test("two damaged files of one second are both kept", () => {
  using at = folder();
  filled(at.path);
  for (let times = 0; times < 2; times++) {
    writeFileSync(at.path, `nonsense ${times}`, { mode: 0o600 });
    open(at.path)[Symbol.dispose]();
  }
  const kept = readdirSync(at.home).filter((name) => name.startsWith("s.db.corrupt-"));
  assert.deepEqual(kept.map((name) => readFileSync(join(at.home, name), "utf8")).sort(), [
    "nonsense 0",
    "nonsense 1",
  ]);
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

test("while only the backup takes changes they are repeated to the other one once each, and the log hears it once", () => {
  using at = folder();
  const heard: string[] = [];
  const log = { ...SILENT, warning: (text: unknown) => void heard.push(String(text)) };
  {
    using store = Store.open({ path: at.path, parts: PARTS, nowMs: () => 1, log: log as never });
    store.commit([put(0)], { backup: true });
    renameSync(at.path, `${at.path}.away`);
    for (let nth = 0; nth < 5; nth++) store.commit([put(1), put(nth)], { backup: true });
    assert.equal(heard.length, 1, heard.join("\n"));
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
