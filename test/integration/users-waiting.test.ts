/** What happens while a change waits for the medium: with a store that answers when the test says so. */
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { ApiError, StoreError } from "#core/errors.ts";
import type { UserView } from "#core/users.ts";
import type { StoreOptions } from "#store/store-options.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import { openStoreHere } from "../support/store-here.ts";
import { Bench, type FakeInbound, listener } from "../support/users-bench.ts";

/** Commits wait for `release` while it is held. */
class SlowBench extends Bench {
  isHeld = false;
  failure: Error | null = null;
  /** Asked for, and not released yet. */
  waiting: (() => void)[] = [];
  override openStore = async (options: StoreOptions): Promise<OpenedStore> => {
    const { store, records } = await openStoreHere(options);
    const commit: typeof store.commit = async (changes, how) => {
      const all = [...changes];
      if (this.isHeld) await new Promise<void>((resolve) => this.waiting.push(resolve));
      if (this.failure !== null) throw this.failure;
      await store.commit(all, how);
    };
    const { compact, close, closeNow } = store;
    return { records, store: { commit, compact, close, closeNow } };
  };

  /** Until so many commits wait. */
  async holds(count: number): Promise<void> {
    while (this.waiting.length < count) await nextTurn();
  }

  async release(): Promise<void> {
    this.isHeld = false;
    for (const go of this.waiting.splice(0)) go();
    for (let turn = 0; turn < 5; turn++) await nextTurn();
  }
}

const refused = (status: number) => (error: unknown) => error instanceof ApiError && error.status === status;
const create = (bench: Bench, name: string, revision = bench.revision("edge"), inbound = "edge") =>
  bench.admin.create({ inbound, name, revision });

test("of 64 changes of one revision at once one succeeds; the others get the present revision", async () => {
  using bench = new SlowBench();
  const [edge] = (await bench.adopt([listener("edge")])) as [FakeInbound];
  for (let round = 0; round < 5; round++) {
    const revision = bench.revision("edge");
    const names = Array.from({ length: 64 }, (_, at) => `user ${round} ${at}`);
    const ends = await Promise.allSettled(names.map((name) => create(bench, name, revision)));
    const won = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
    assert.equal(won.length, 1);
    for (const end of ends)
      if (end.status === "rejected")
        assert.ok(refused(409)(end.reason) && end.reason.message.includes(`is ${won[0]?.revision}`));
    assert.equal(bench.revision("edge"), won[0]?.revision);
    assert.equal(edge.users.length, round + 1);
  }
});

test("a change is invisible until the disk has it: no view, no listener, no token, no revision", async () => {
  using bench = new SlowBench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const before = bench.admin.users(null);
  const { id, revision } = bench.first();
  const token = bench.admin.user(id)?.subscriptionUrl?.split("/").at(-1) as string;
  bench.isHeld = true;
  const rotated = bench.admin.rotateSubscription(id, revision);
  await bench.holds(1);
  assert.deepEqual(bench.admin.users(null), before);
  assert.notEqual(bench.admin.subscription(token), null);
  await bench.release();
  assert.ok((await rotated).revision > revision);
  assert.equal(bench.admin.subscription(token), null);
  bench.isHeld = true;
  const removed = bench.admin.remove(id, bench.revision("edge"));
  await bench.holds(1);
  assert.equal(edge.users.length, 1);
  await bench.release();
  await removed;
  assert.deepEqual([bench.admin.users(null), edge.users], [[], []]);
});

test("listeners do not wait for each other, and changes of one listener come one after the other", async () => {
  using bench = new SlowBench();
  await bench.adopt([listener("edge"), listener("side")]);
  bench.isHeld = true;
  const first = create(bench, "one");
  const other = create(bench, "two", bench.revision("side"), "side");
  const stale = assert.rejects(create(bench, "three"), refused(409));
  await bench.holds(2);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(bench.waiting.length, 2, "the third has not been looked at");
  await bench.release();
  await Promise.all([first, other, stale]);
  assert.deepEqual(
    bench.admin.users(null).map(({ name }) => name),
    ["one", "two"],
  );
});

test("a reload waits for the change under way, and the next change for the reload", async () => {
  using bench = new SlowBench();
  await bench.adopt([listener("edge", "alice")]);
  const { id, revision } = bench.first();
  bench.isHeld = true;
  const changed = bench.admin.update(id, { revision, name: "renamed" });
  await bench.holds(1);
  const order: string[] = [];
  const reloaded = bench.adopt([listener("edge")]).then(([fresh]) => {
    order.push("reloaded");
    return fresh as FakeInbound;
  });
  const stale = assert
    .rejects(bench.admin.update(id, { revision, enabled: false }), refused(409))
    .then(() => order.push("refused"));
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(bench.waiting.length, 1);
  await bench.release();
  const { revision: next } = await changed;
  const fresh = await reloaded;
  await stale;
  assert.deepEqual(order, ["reloaded", "refused"]);
  assert.deepEqual([bench.first().name, bench.revision("edge"), fresh.users.length], ["renamed", next, 1]);
});

test("a user who is deleted while counters are to be written stays deleted, and no old record overwrites a new one", async () => {
  using bench = new SlowBench();
  await bench.adopt([listener("edge", "alice", "bob")]);
  const [alice, bob] = bench.admin.users("edge") as [UserView, UserView];
  bench.meterOf(alice.id).reserve("upload", 5);
  bench.meterOf(bob.id).reserve("upload", 6);
  bench.isHeld = true;
  const removed = bench.admin.remove(alice.id, bench.revision("edge"));
  await bench.holds(1);
  const saved = bench.users.checkpoint();
  await bench.release();
  await Promise.all([removed, saved]);
  bench.isHeld = true;
  const renamed = bench.admin.update(bob.id, { revision: bench.revision("edge"), name: "Robert" });
  await bench.holds(1);
  bench.meterOf(bob.id).reserve("upload", 7);
  const again = bench.users.checkpoint();
  await bench.release();
  await Promise.all([renamed, again]);
  bench.restart();
  await bench.adopt([listener("edge")]);
  const [last, ...none] = bench.admin.users(null);
  assert.deepEqual([last?.name, last?.uploadBytes, none], ["Robert", 13, []]);
});

test("what is counted while something is written is neither lost nor counted twice, also where writing fails", async () => {
  using bench = new SlowBench();
  await bench.adopt([listener("edge", "alice")]);
  const { id } = bench.first();
  const meter = bench.meterOf(id);
  meter.reserve("upload", 1);
  bench.isHeld = true;
  const saved = bench.users.checkpoint();
  await bench.holds(1);
  meter.reserve("upload", 10);
  bench.failure = new StoreError("no space");
  await bench.release();
  await saved;
  bench.failure = null;
  await bench.users.checkpoint();
  bench.isHeld = true;
  const limited = bench.admin.update(id, {
    revision: bench.revision("edge"),
    limits: { quota: { totalBytes: 1000, reset: "month" } },
  });
  await bench.holds(1);
  meter.reserve("upload", 100); // by the limits from before
  await bench.release();
  await limited;
  meter.reserve("upload", 1000); // by the new ones
  assert.deepEqual([bench.first().uploadBytes, bench.first().quota?.uploadBytes], [1111, 1000]);
  await bench.users.checkpoint();
  bench.restart();
  await bench.adopt([listener("edge")]);
  assert.deepEqual([bench.first().uploadBytes, bench.first().quota?.uploadBytes], [1111, 1000]);
});

test("a change whose writing fails has changed nothing, and those behind it are checked against the present state", async () => {
  using bench = new SlowBench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const { id, revision } = bench.first();
  const before = bench.admin.users(null);
  bench.isHeld = true;
  const failing = assert.rejects(bench.admin.remove(id, revision), /no space/);
  const behind = bench.admin.update(id, { revision, name: "renamed" });
  await bench.holds(1);
  bench.failure = new StoreError("no space");
  bench.isHeld = false;
  bench.waiting.shift()?.();
  await failing;
  assert.deepEqual([bench.admin.users(null), edge.users.length], [before, 1]);
  bench.failure = null;
  await behind.catch((error: unknown) => assert.match(String(error), /no space/)); // it may have met the same disk
  await bench.admin.update(id, { revision: bench.revision("edge"), name: "again" });
  assert.equal(bench.first().name, "again");
});

test("a reload that cannot be written leaves a listener that serves as it was, with all that changed before", async () => {
  using bench = new SlowBench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const before = bench.admin.users(null);
  bench.failure = new StoreError("no space");
  const next = bench.settings([listener("edge"), listener("new", "eve")]);
  await assert.rejects(
    bench.users.adopt(next, [edge], () => [edge]),
    /no space/,
  );
  bench.failure = null;
  assert.deepEqual([bench.admin.users(null), edge.users.length], [before, 1]);
  await bench.adopt([listener("edge"), listener("new", "mallory")]);
  assert.deepEqual(
    bench.admin.users("new").map(({ name }) => name),
    ["mallory"],
    "what was refused has not been written",
  );
});

test("where one listener fails for good, a change of another one under way lets no user in again", async () => {
  using bench = new SlowBench();
  const [edge, side] = (await bench.adopt([listener("edge", "alice"), listener("side")])) as FakeInbound[];
  assert.ok(edge !== undefined && side !== undefined);
  bench.isHeld = true;
  const other = assert.rejects(
    create(bench, "carol", bench.revision("side"), "side"),
    /managed no more|not open/,
  );
  const failing = assert.rejects(create(bench, "bob"), /users not taken/);
  await bench.holds(2);
  edge.failures = 2;
  bench.isHeld = false;
  bench.waiting.pop()?.();
  await failing;
  assert.equal(bench.users.admin, null);
  await bench.release();
  await other;
  assert.deepEqual([edge.users, side.users], [[], []]);
});

test("a quota that is used up while a change waits bars the user, whichever comes first", async () => {
  using bench = new SlowBench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const { id } = bench.first();
  const quota = { quota: { totalBytes: 10 } };
  await bench.admin.update(id, { revision: bench.revision("edge"), limits: quota });
  bench.isHeld = true;
  const renamed = bench.admin.update(id, { revision: bench.revision("edge"), name: "renamed" });
  await bench.holds(1);
  bench.meterOf(id).reserve("upload", 11);
  const watched = bench.users.watchLimits();
  await bench.release();
  await Promise.all([renamed, watched]);
  assert.deepEqual([edge.users, bench.first().status, bench.first().name], [[], "limited", "renamed"]);
});

test("the end of the program writes what waits, and the file is free when it returns", async () => {
  using bench = new SlowBench();
  await bench.adopt([listener("edge", "alice")]);
  const { id } = bench.first();
  bench.meterOf(id).reserve("upload", 9);
  bench.restart(); // closes in this turn
  await bench.adopt([listener("edge")]);
  assert.equal(bench.first().uploadBytes, 9);
});
