/** Managed users behave alike in a state file and in a fleet's database: one suite for both. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ApiError } from "#core/errors.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { Bench, type BenchOptions, type FakeInbound, listener } from "../support/users-bench.ts";

const refused =
  (status: number, message = /./) =>
  (error: unknown) => {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.status, status, error.message);
    assert.match(error.message, message);
    return true;
  };

describe("the state file alone", () => suite(async () => ({})));

describe("a fleet's database", { skip: noPostgres ?? false }, () => {
  let database: FleetDatabase;
  before(async () => void (database = await startFleetDatabase()));
  after(() => database?.[Symbol.asyncDispose]());
  suite(async () => ({ fleet: (await database.fresh())("fra-1") }));
});

function suite(optionsOf: () => Promise<BenchOptions>): void {
  const start = async (): Promise<Bench> => new Bench(await optionsOf());

  test("users of the file are taken over once", async () => {
    using bench = await start();
    const [edge] = await bench.adopt([listener("edge", "alice", "", "ALICE")]);
    const names = () => bench.admin.users(null).map(({ name }) => name);
    assert.deepEqual(names().sort(), ["ALICE-2", "alice", "user-2"]);
    assert.equal(edge?.users.length, 3);
    const [view] = bench.admin.inbounds();
    assert.equal(view?.appliedRevision, view?.revision);
    bench.restart();
    await bench.adopt([listener("edge", "another core")]);
    assert.equal(names().length, 3);
  });

  test("every change answers with a new revision, and survives a restart", async () => {
    using bench = await start();
    const [edge] = (await bench.adopt([listener("edge")])) as [FakeInbound];
    const { admin } = bench;
    const revision = bench.revision("edge");
    const made = await admin.create({
      inbound: "edge",
      name: " alice ",
      revision,
      limits: { connections: 3 },
      note: "paid\nuntil May",
      labels: ["Family", "family"],
    });
    assert.equal(made.name, "alice");
    assert.deepEqual(edge.users, [{ id: made.id, credential: made.credential, flow: null }]);
    const calls = edge.calls;
    const renamed = await admin.update(made.id, { revision: made.revision, name: "Alice B." });
    const reset = await admin.resetTraffic(made.id, renamed.revision);
    const rotated = await admin.rotateSubscription(made.id, reset.revision);
    assert.equal(edge.calls, calls, "the listener is not concerned");
    assert.match(rotated.subscriptionUrl, /^https:\/\/p\.example\/x\/sub\/svc\/.{43}$/);
    assert.notEqual(rotated.subscriptionUrl, made.subscriptionUrl);
    const same = await admin.update(made.id, { revision: rotated.revision });
    const off = await admin.update(made.id, { revision: same.revision, enabled: false });
    const revisions = [revision, made, renamed, reset, rotated, same, off].map((one) =>
      typeof one === "number" ? one : one.revision,
    );
    assert.deepEqual(
      revisions,
      [...new Set(revisions)].sort((a, b) => a - b),
    );
    assert.deepEqual([edge.users, off.subscriptionUrl, off.trafficGeneration], [[], null, 2]);
    assert.equal(off.limits.connections, 3);
    assert.deepEqual(off.remarks, { note: "paid\nuntil May", labels: ["Family"] });
    bench.restart();
    await bench.adopt([listener("edge")]);
    assert.deepEqual(bench.admin.user(made.id), off);
    await bench.admin.remove(made.id, off.revision);
    assert.equal(bench.admin.user(made.id), null);
    bench.restart();
    await bench.adopt([listener("edge")]);
    assert.deepEqual(bench.admin.users(null), []);
  });

  test("the order of refusals: unknown, then stale, then a field", async () => {
    using bench = await start();
    await bench.adopt([listener("edge", "alice", "bob")]);
    const { admin } = bench;
    const { id, revision, name } = bench.first();
    assert.equal(name, "alice");
    const before = admin.users(null);
    await assert.rejects(admin.create({ inbound: "other", name: "", revision: 1 }), refused(404));
    await assert.rejects(admin.update("unknown", { revision: 1 }), refused(404));
    await assert.rejects(admin.remove("unknown", 1), refused(404));
    const stale = new RegExp(`expected revision ${revision + 1}, the current revision is ${revision}$`);
    await assert.rejects(
      admin.create({ inbound: "edge", name: "", revision: revision + 1 }),
      refused(409, stale),
    );
    await assert.rejects(admin.update(id, { revision: revision + 1, name: "" }), refused(409, stale));
    await assert.rejects(admin.remove(id, revision + 1), refused(409, stale));
    await assert.rejects(admin.create({ inbound: "edge", name: " ", revision }), refused(400, /^name/));
    await assert.rejects(
      admin.update(id, { revision, name: "BOB" }),
      refused(400, /has a user of this name/),
    );
    await assert.rejects(admin.update(id, { revision, uuid: "secret of bob" }), refused(400, /has the same/));
    await assert.rejects(admin.update(id, { revision, password: "x" }), refused(400, /^password/));
    await assert.rejects(admin.update(id, { revision, flow: "x" }), refused(400, /^flow/));
    await assert.rejects(
      admin.update(id, { revision, limits: { connections: -1 } }),
      refused(400, /connection_limit/),
    );
    assert.deepEqual(admin.users(null), before);
  });

  test("of many changes at one revision exactly one is done", async () => {
    using bench = await start();
    await bench.adopt([listener("edge")]);
    const revision = bench.revision("edge");
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) =>
        bench.admin.create({ inbound: "edge", name: `user ${at}`, revision }),
      ),
    );
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    for (const outcome of outcomes) if (outcome.status === "rejected") refused(409)(outcome.reason);
    assert.equal(bench.admin.users(null).length, 1);
  });

  test("listeners have revisions of their own, and the same credential is allowed on both", async () => {
    using bench = await start();
    await bench.adopt([listener("edge", "alice"), listener("side")]);
    const [edge, side] = [bench.revision("edge"), bench.revision("side")];
    const made = await bench.admin.create({
      inbound: "side",
      name: "alice",
      uuid: "secret of alice",
      revision: side,
    });
    assert.equal(bench.revision("edge"), edge);
    assert.ok(made.revision > side);
  });

  test("a listener that refuses its users leaves everything as it was", async () => {
    using bench = await start();
    const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
    const { id } = bench.first();
    const { users } = edge;
    edge.failures = 1;
    const revision = bench.revision("edge");
    await assert.rejects(bench.admin.update(id, { revision, enabled: false }), refused(500, /as before/));
    assert.deepEqual(edge.users, users);
    assert.equal(bench.first().enabled, true);
    bench.restart();
    const [again] = (await bench.adopt([listener("edge")])) as [FakeInbound];
    assert.deepEqual([again.users, bench.first().enabled], [users, true]);
    const off = await bench.admin.update(id, { revision: bench.revision("edge"), enabled: false });
    assert.equal(off.enabled, false);
  });
}
