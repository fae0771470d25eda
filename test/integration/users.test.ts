import assert from "node:assert/strict";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiError, ConfigError, StoreError } from "#core/errors.ts";
import type { Decision } from "#core/router.ts";
import { until } from "../support/until.ts";
import { Bench, FakeInbound, listener, METER, metadataOf } from "../support/users-bench.ts";

const refused = (status: number) => (error: unknown) => error instanceof ApiError && error.status === status;

test("users of the file are taken over once, named and in order", async () => {
  using bench = new Bench();
  const [edge] = await bench.adopt([listener("edge", "alice", "", "ALICE")]);
  const users = bench.admin.users(null);
  assert.deepEqual(users.map(({ name }) => name).sort(), ["ALICE-2", "alice", "user-2"]);
  assert.deepEqual(edge?.users.map(({ id }) => id).sort(), users.map(({ id }) => id).sort());
  const [view] = bench.admin.inbounds();
  assert.equal(view?.appliedRevision, view?.revision);
  bench.restart();
  await bench.adopt([listener("edge", "another core")]);
  assert.equal(bench.admin.users(null).length, 3);
});

test("a change goes to the file and to the listener, and to the listener only where it needs it", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt([listener("edge")])) as [FakeInbound];
  const alice = await bench.admin.create({
    inbound: "edge",
    name: "alice",
    revision: bench.revision("edge"),
  });
  assert.deepEqual(edge.users, [{ id: alice.id, credential: alice.credential, flow: null }]);
  const calls = edge.calls;
  bench.nowMs += 5;
  const renamed = await bench.admin.update(alice.id, { revision: alice.revision, name: "Alice B." });
  const reset = await bench.admin.resetTraffic(alice.id, renamed.revision);
  const rotated = await bench.admin.rotateSubscription(alice.id, reset.revision);
  assert.equal(edge.calls, calls);
  assert.deepEqual(
    [renamed.revision, reset.trafficGeneration, rotated.revision],
    [bench.nowMs, 2, bench.nowMs + 2],
  );
  const off = await bench.admin.update(alice.id, { revision: rotated.revision, enabled: false });
  assert.deepEqual([edge.users, off.subscriptionUrl], [[], null]);
  bench.restart();
  await bench.adopt([listener("edge")]);
  assert.deepEqual({ ...bench.admin.user(alice.id) }, off);
});

test("the order of refusals: unknown, then stale, then a field", async () => {
  using bench = new Bench();
  await bench.adopt([listener("edge", "alice")]);
  const { admin } = bench;
  const [alice] = admin.users(null);
  const { id, revision } = alice as { id: string; revision: number };
  await assert.rejects(() => admin.create({ inbound: "other", name: "", revision: 1 }), refused(404));
  await assert.rejects(() => admin.update("unknown", { revision: 1 }), refused(404));
  await assert.rejects(() => admin.remove("unknown", 1), refused(404));
  await assert.rejects(() => admin.create({ inbound: "edge", name: "", revision: 1 }), refused(409));
  await assert.rejects(() => admin.update(id, { revision: revision + 1, name: "" }), refused(409));
  await assert.rejects(() => admin.resetTraffic(id, 1), refused(409));
  await assert.rejects(() => admin.rotateSubscription(id, 1), refused(409));
  await assert.rejects(() => admin.create({ inbound: "edge", name: "ALICE", revision }), refused(400));
  assert.equal(bench.revision("edge"), revision);
});

test("a listener that refuses its users gets the old ones back, and the file, too", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const [before] = bench.admin.users(null);
  edge.failures = 1;
  edge.failure = new ConfigError("no");
  const create = () =>
    bench.admin.create({ inbound: "edge", name: "bob", revision: before?.revision as number });
  await assert.rejects(create, {
    status: 500,
    message: "listener edge: users not taken; everything is as before",
  });
  assert.deepEqual(bench.admin.users(null), [before]);
  assert.equal(edge.users.length, 1);
  bench.restart();
  await bench.adopt([listener("edge")]);
  assert.equal(bench.admin.users(null).length, 1);
});

test("a listener that cannot be put back either closes everything", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  edge.failures = 2;
  await assert.rejects(() =>
    bench.admin.create({ inbound: "edge", name: "bob", revision: bench.revision("edge") }),
  );
  assert.equal(bench.users.admin, null);
  assert.deepEqual(edge.users, []);
});

test("a state file that cannot be written changes nothing", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const [before] = bench.admin.users(null);
  rmSync(join(bench.home, "state.db.bak"));
  writeFileSync(join(bench.home, "state.db.bak"), "another file", { mode: 0o600 });
  const revision = before?.revision as number;
  await assert.rejects(() => bench.admin.create({ inbound: "edge", name: "bob", revision }), refused(409));
  assert.deepEqual([bench.admin.users(null), edge.users.length], [[before], 1]);
});

test("bytes are counted for the user and come back with the file", async () => {
  using bench = new Bench();
  await bench.adopt([listener("edge", "alice")]);
  const alice = bench.first();
  const ledger = bench.users.metering({ open: () => METER });
  const meter = ledger.open(metadataOf("edge", alice.id), {} as Decision);
  assert.equal(ledger.open(metadataOf("edge", "unknown"), {} as Decision), METER);
  assert.equal(meter.reserve("upload", 100), 5);
  meter.reserve("download", 7);
  assert.equal(meter.admit("upload", 1000), false); // dropped, so not counted
  const counted = () => {
    const { uploadBytes, downloadBytes } = bench.admin.user(alice.id) ?? assert.fail();
    return [uploadBytes, downloadBytes];
  };
  assert.deepEqual(counted(), [100, 7]);
  await bench.users.checkpoint();
  bench.restart();
  await bench.adopt([listener("edge")]);
  assert.deepEqual(counted(), [100, 7]);
  const open = bench.meterOf(alice.id);
  await bench.admin.resetTraffic(alice.id, bench.revision("edge"));
  assert.deepEqual(counted(), [0, 0]);
  open.reserve("upload", 3); // a session that goes on counts into the new generation
  await bench.adopt([listener("edge")]); // and a reload changes nothing about that
  assert.deepEqual(counted(), [3, 0]);
});

test("what has moved is given to the medium before a second is over", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  using bench = new Bench();
  await bench.adopt([listener("edge", "alice")]);
  const id = bench.admin.users("edge")[0]?.id ?? assert.fail();
  bench.meterOf(id, METER).reserve("upload", 1000);
  assert.equal([...bench.users.moved()].length, 1);
  context.mock.timers.tick(800);
  await until("the counter is written", () => [...bench.users.moved()].length === 0);
});

test("a listener that is taken out of the list and put back has its users and counters", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt([listener("edge", "alice"), listener("other")])) as [FakeInbound];
  const alice = bench.first();
  bench.meterOf(alice.id).reserve("upload", 9);
  const link = bench.admin.user(alice.id)?.subscriptionUrl as string;
  const token = link.slice(link.lastIndexOf("/") + 1);
  assert.equal(bench.admin.subscription(token)?.link, "test://secret of alice@p.example:8443#edge - alice");
  await bench.adopt([listener("other")]);
  assert.deepEqual(
    [edge.users, bench.admin.user(alice.id), bench.admin.subscription(token)],
    [[], null, null],
  );
  await bench.adopt([listener("edge"), listener("other")]);
  assert.equal(bench.admin.user(alice.id)?.uploadBytes, 9);
  assert.notEqual(bench.admin.subscription(token), null);
});

test("tokens die with rotation, disabling and deletion, and come back with enabling", async () => {
  using bench = new Bench();
  await bench.adopt([listener("edge", "alice")]);
  const { admin } = bench;
  const alice = bench.first();
  const tokenNow = () => admin.user(alice.id)?.subscriptionUrl?.split("/").at(-1) as string;
  const first = tokenNow();
  assert.match(first, /^[A-Za-z0-9_-]{43}$/);
  await admin.update(alice.id, { revision: bench.revision("edge"), enabled: false });
  assert.equal(admin.subscription(first), null);
  assert.equal((await admin.rotateSubscription(alice.id, bench.revision("edge"))).subscriptionUrl, "");
  await admin.update(alice.id, { revision: bench.revision("edge"), enabled: true });
  assert.equal(admin.subscription(first), null);
  const second = tokenNow();
  assert.notEqual(admin.subscription(second), null);
  await admin.remove(alice.id, bench.revision("edge"));
  assert.equal(admin.subscription(second), null);
});

test("what cannot be put in force is refused with everything as it was", async () => {
  using bench = new Bench();
  await bench.adopt([listener("edge", "alice")]);
  const before = bench.admin.users(null);
  const other = { ...listener("edge"), protocol: "another" };
  await assert.rejects(() => bench.adopt([other]), ConfigError);
  const doubled = {
    ...listener("new", "a"),
    options: { users: [1, 2].map(() => ({ name: "", credential: "c", flow: "" })) },
  };
  await assert.rejects(() => bench.adopt([listener("edge"), doubled]), ConfigError);
  writeFileSync(join(bench.home, "foreign"), "{}", { mode: 0o600 });
  await assert.rejects(() => bench.adopt([listener("edge")], "foreign"), StoreError);
  assert.deepEqual(bench.admin.users(null), before);
  chmodSync(join(bench.home, "foreign"), 0o600);
  await bench.adopt([listener("edge")], "elsewhere.db");
  assert.deepEqual(bench.admin.users(null), []);
  await bench.adopt(null);
  assert.equal(bench.users.admin, null);
});

test("settings that are refused leave a listener that runs on with its users, and a fresh one with none", async () => {
  using bench = new Bench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const before = edge.users;
  const [fresh, unwilling] = [new FakeInbound("new"), new FakeInbound("unwilling")];
  unwilling.failures = 1;
  const next = [listener("edge", "mallory"), listener("new", "eve"), listener("unwilling")];
  const adopt = () =>
    bench.users.adopt(bench.settings(next, "elsewhere.db"), [edge, fresh, unwilling], () => bench.inbounds);
  await assert.rejects(adopt, /no/);
  assert.deepEqual([edge.users, fresh.users, unwilling.users], [before, [], []]);
  assert.equal(bench.first().name, "alice");
});

test("a start whose users cannot be loaded lets no user in", async () => {
  using bench = new Bench();
  const [edge, unwilling] = [new FakeInbound("edge"), new FakeInbound("unwilling")];
  unwilling.failures = 1;
  const settings = bench.settings([listener("edge", "alice"), listener("unwilling")]);
  await assert.rejects(() => bench.users.adopt(settings, [edge, unwilling], () => [edge, unwilling]), /no/);
  assert.deepEqual([bench.users.admin, edge.users], [null, []]);
});
