/** The history of users in the state file: one transaction with the counters, and nothing written without traffic. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import type { Change } from "#store/kv.ts";
import type { OpenedStore, SupervisedOptions } from "#store/opened-store.ts";
import { FORMATS, unreadable } from "#upgrade/formats.ts";
import { HISTORY } from "#users/history-records.ts";
import { decodeState, LISTENERS, PARTS, USERS } from "#users/records.ts";
import { openStoreHere } from "../support/store-here.ts";
import { Bench, listener } from "../support/users-bench.ts";

const EDGE = [listener("edge", "alice", "bob")];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FORMER_PARTS = PARTS.filter((part) => part !== HISTORY);

/** Remembers what is written; refuses it while `isFull`. */
class WatchedBench extends Bench {
  readonly written: (readonly Change[])[] = [];
  isFull = false;
  override openStore = async (options: SupervisedOptions): Promise<OpenedStore> => {
    const { records, store } = await openStoreHere(options);
    const commit: typeof store.commit = async (changes, how) => {
      const all = [...changes];
      if (this.isFull) throw new Error("no space");
      this.written.push(all);
      await store.commit(all, how);
    };
    return { records, store: { ...store, commit } };
  };

  /** Which rows the writes since the last look were about. */
  rows(): readonly string[] {
    return this.written.splice(0).flatMap((changes) => changes.map(({ part, key }) => `${part} ${key}`));
  }

  history(id: string, days = 30) {
    return this.admin.history(id, days) ?? assert.fail(`no history of ${id}`);
  }

  /** By day: bytes up. */
  days(id: string): readonly number[] {
    return this.history(id).days.map(({ uploadBytes }) => uploadBytes);
  }

  move(id: string, bytes: number): void {
    this.meterOf(id).reserve("upload", bytes);
  }
}

/** The file of a bench that has ended: every user's sum by days is the counter, apart from what a reset took. */
function compare(bench: Bench, taken: Readonly<Record<string, number>> = {}): void {
  using store = Store.open({
    path: join(bench.home, "state.db"),
    parts: PARTS,
    nowMs: () => bench.nowMs,
    log: SILENT,
  });
  const { traffic } = decodeState(store.entries(LISTENERS), store.entries(USERS), store.entries(HISTORY));
  for (const [id, { uploadBytes, history }] of traffic) {
    const { days } = history?.shown(bench.nowMs, 62) ?? { days: [] };
    const sum = days.reduce((all, day) => all + day.uploadBytes, 0);
    assert.equal(sum, uploadBytes + (taken[id] ?? 0));
  }
}

test("hours and days survive starts, resets and other names; another user starts empty", async () => {
  using bench = new WatchedBench();
  await bench.adopt(EDGE);
  const { id } = bench.first();
  bench.move(id, 10);
  bench.restart();
  await bench.adopt(EDGE);
  bench.nowMs += HOUR_MS;
  bench.move(id, 20);
  bench.nowMs += DAY_MS;
  bench.move(id, 40);
  assert.deepEqual(bench.days(id), [30, 40]);
  await bench.admin.update(id, { revision: bench.revision("edge"), name: "alicia" });
  await bench.admin.resetTraffic(id, bench.revision("edge"));
  bench.move(id, 80);
  assert.deepEqual(bench.days(id), [30, 120], "that it is counted anew changes nothing of what was");
  bench.restart();
  compare(bench, { [id]: 70 });
  await bench.adopt(EDGE);
  assert.deepEqual(bench.days(id), [30, 120]);
  assert.equal(bench.history(id).hours.length, 3);
  await bench.admin.remove(id, bench.revision("edge"));
  const again = await bench.admin.create({
    inbound: "edge",
    name: "alicia",
    revision: bench.revision("edge"),
  });
  assert.deepEqual(bench.days(again.id), []);
});

test("the history of a removed user is readable for as long as reports without a policy are", async () => {
  using bench = new WatchedBench();
  await bench.adopt(EDGE);
  const { id } = bench.first();
  const silent = bench.admin.users(null)[1]?.id ?? "";
  bench.move(id, 10);
  for (const one of [id, silent]) await bench.admin.remove(one, bench.revision("edge"));
  const removedAt = Math.floor(bench.nowMs / 1000) * 1000;
  assert.equal(bench.admin.history(silent, 30), null, "there is nothing to keep");
  for (let start = 0; start < 2; start++) {
    const { removedAtMs, days, inbound } = bench.history(id);
    assert.deepEqual([removedAtMs, inbound, days[0]?.uploadBytes], [removedAt, "edge", 10]);
    bench.restart();
    await bench.adopt(EDGE);
  }
  const step = async (ms: number): Promise<void> => {
    bench.nowMs += ms;
    bench.monotonicMs += ms;
    await bench.users.checkpoint();
  };
  for (let day = 0; day < 90; day++) await step(DAY_MS);
  assert.equal(bench.history(id, 62).days.length, 0);
  await step(DAY_MS);
  assert.equal(bench.admin.history(id, 62), null);
  bench.rows();
  const other = await bench.admin.create({ inbound: "edge", name: "eve", revision: bench.revision("edge") });
  bench.move(other.id, 1);
  await bench.users.checkpoint();
  assert.ok(bench.rows().includes(`${HISTORY} ${id}`), "the next counters take its row along");
  bench.restart();
  await bench.adopt(EDGE);
  assert.equal(bench.admin.history(id, 62), null);
});

test("a second writes users with traffic alone, and their closed hours once an hour", async () => {
  using bench = new WatchedBench();
  await bench.adopt(EDGE);
  const { id } = bench.first();
  bench.rows();
  await bench.users.checkpoint();
  assert.deepEqual(bench.rows(), []);
  for (const [at, wanted] of [
    [0, [`${USERS} ${id}`]],
    [1_000, [`${USERS} ${id}`]],
    [HOUR_MS, [`${USERS} ${id}`, `${HISTORY} ${id}`]],
    [1_000, [`${USERS} ${id}`]],
  ] as const) {
    bench.nowMs += at;
    bench.move(id, 5);
    await bench.users.checkpoint();
    assert.equal(bench.written.length, 1, "in one transaction");
    assert.deepEqual(bench.rows(), wanted);
  }
  bench.nowMs += HOUR_MS;
  await bench.users.checkpoint();
  assert.deepEqual(bench.rows(), [], "an hour that ends in silence waits in the user's record");
});

test("an hour that the file refused is in its next write", async () => {
  using bench = new WatchedBench();
  await bench.adopt(EDGE);
  const { id } = bench.first();
  bench.move(id, 10);
  await bench.users.checkpoint();
  bench.nowMs += HOUR_MS;
  bench.move(id, 20);
  bench.isFull = true;
  await bench.users.checkpoint();
  await assert.rejects(() => bench.admin.remove(id, bench.revision("edge")));
  bench.isFull = false;
  await bench.users.checkpoint();
  assert.deepEqual(bench.rows().slice(-2), [`${USERS} ${id}`, `${HISTORY} ${id}`]);
  bench.restart();
  compare(bench);
  await bench.adopt(EDGE);
  assert.deepEqual([bench.days(id), bench.history(id).removedAtMs], [[30], null]);
});

test("a user who was removed in the file, and whom the listener did not let go, has all of it", async () => {
  using bench = new WatchedBench();
  const [edge] = await bench.adopt(EDGE);
  const { id } = bench.first();
  bench.move(id, 10);
  bench.nowMs += HOUR_MS;
  bench.move(id, 20);
  if (edge !== undefined) edge.failures = 1;
  await assert.rejects(() => bench.admin.remove(id, bench.revision("edge")), /users not taken/);
  assert.deepEqual(bench.days(id), [30]);
  bench.restart();
  compare(bench);
  await bench.adopt(EDGE);
  assert.deepEqual([bench.days(id), bench.history(id).removedAtMs], [[30], null]);
});

test("a listener that is taken out and put back has the history of its users", async () => {
  using bench = new WatchedBench();
  await bench.adopt([...EDGE, listener("other")]);
  const { id } = bench.first();
  bench.move(id, 10);
  await bench.adopt([listener("other")]);
  assert.equal(bench.admin.history(id, 30), null);
  bench.nowMs += HOUR_MS;
  await bench.adopt([...EDGE, listener("other")]);
  bench.move(id, 20);
  assert.deepEqual(bench.days(id), [30]);
});

test("a file of a version without histories is read, and has them from then on; its version is told that it lacks them", async () => {
  using bench = new WatchedBench();
  const { openStore } = bench;
  bench.openStore = (options) => openStore({ ...options, parts: FORMER_PARTS });
  await bench.adopt(EDGE);
  const { id } = bench.first();
  bench.move(id, 10);
  bench.restart();
  {
    // As that version left it: without the hour in the user's record.
    using store = Store.open({
      path: join(bench.home, "state.db"),
      parts: FORMER_PARTS,
      nowMs: () => bench.nowMs,
      log: SILENT,
    });
    const [, value] = [...store.entries(USERS)].find(([key]) => key === id) ?? assert.fail();
    const { hour, ...former } = JSON.parse(value.toString()) as { hour: unknown };
    assert.ok(hour !== undefined);
    store.commit([{ part: USERS, key: id, value: Buffer.from(JSON.stringify(former)) }], { backup: true });
  }
  bench.openStore = openStore;
  await bench.adopt(EDGE);
  assert.deepEqual([bench.first().uploadBytes, bench.days(id)], [10, []]);
  bench.move(id, 5);
  bench.nowMs += HOUR_MS;
  bench.move(id, 5);
  bench.restart();
  await bench.adopt(EDGE);
  assert.deepEqual([bench.first().uploadBytes, bench.days(id)], [20, [10]]);
  const users = FORMATS["managed users"] ?? assert.fail();
  const former = { ...FORMATS, "managed users": { ...users, parts: FORMER_PARTS } };
  assert.deepEqual(unreadable(FORMATS, former), ["managed users: history"]);
});
