/** One quota for all nodes of a fleet: parts of it are lent, and what is lent and not spent is had again. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { FleetSettings } from "#users/fleet-settings.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { Bench, listener } from "../support/users-bench.ts";

const MIB = 1_048_576;
const skip = noPostgres ?? false;
let database: FleetDatabase;
before(async () => {
  if (noPostgres === null) database = await startFleetDatabase();
});
after(() => database?.[Symbol.asyncDispose]());

async function lend(bench: Bench, totalBytes: number, reset = "never"): Promise<void> {
  const { id } = bench.first();
  const quota = { totalBytes, reset };
  await bench.admin.update(id, { revision: bench.revision("edge"), limits: { quota } });
}

/** One piece, as a session does it; answers with what was moved: none where the user is over or waits. */
function move(bench: Bench, bytes: number): number {
  using meter = bench.meterOf(bench.first().id, { ...OPEN });
  return meter.admit("download", bytes) ? bytes : 0;
}

const OPEN = {
  pieceBytes: Number.MAX_SAFE_INTEGER,
  reserve: () => 0,
  trySend: () => 0,
  adjust() {},
  admit: () => true,
  [Symbol.dispose]() {},
};

/** Between two looks that psql takes: a process each. */
const PSQL = { everyMs: 150 };

const lent = (settings: FleetSettings) =>
  Number(database.in(settings, "SELECT coalesce(sum(bytes), 0) FROM weir.lease"));
const totalOf = (settings: FleetSettings) =>
  Number(database.in(settings, "SELECT coalesce(sum(upload + download), 0) FROM weir.totals(-1)"));

test(
  "two nodes spend one quota, and not more than they hold at its end beyond it; more quota lets in on both",
  { skip },
  async () => {
    const settings = await database.fresh();
    using a = new Bench({ fleet: settings("fra-1") });
    using b = new Bench({ fleet: settings("ams-1") });
    await a.adopt([listener("edge", "alice")]);
    await b.adopt([listener("edge")]);
    await lend(a, 20 * MIB);
    await until("the quota on b", () => b.first().limits.quota?.totalBytes === 20 * MIB);
    const benches = [a, b];
    const status = () => benches.map((bench) => bench.first().status);
    let moved = 0;
    await until(
      () => `over on both: ${moved} ${status()}`,
      () => {
        for (const bench of benches) for (let piece = 0; piece < 4; piece++) moved += move(bench, MIB / 16);
        return status().every((one) => one === "limited");
      },
      { withinMs: 30_000 },
    );
    // Beyond it is at most what each node holds at the end, 1 MiB here, and its last piece.
    assert.ok(moved >= 18 * MIB && moved <= 22 * MIB + MIB / 8, String(moved / MIB));
    // A look that runs already is not waited for by another one.
    await until("taken from the listeners", () =>
      benches.every((bench) => bench.inbounds[0]?.users.length === 0),
    );
    await until("all is in the ledger", () => totalOf(settings("x")) === moved, PSQL);
    await lend(a, 60 * MIB);
    await until("in again", () => status().every((one) => one === "active"));
    await until("on the listener again", () => b.inbounds[0]?.users.length === 1);
  },
);

test("a node has no more than its part of a quota from the change on that sets it", { skip }, async () => {
  const settings = await database.fresh();
  using bench = new Bench({ fleet: settings("fra-1") });
  await bench.adopt([listener("edge", "alice")]);
  await lend(bench, 20 * MIB);
  let moved = 0;
  for (let piece = 0; piece < 20 * 16; piece++) moved += move(bench, MIB / 16); // in one turn: nothing can be asked for
  assert.equal(moved, MIB);
});

test(
  "a node that leaves brings back what it holds; one that was killed when it is there again",
  { skip },
  async () => {
    const settings = (await database.fresh())("fra-1");
    using bench = new Bench({ fleet: settings });
    await bench.adopt([listener("edge", "alice")]);
    await lend(bench, 1000 * MIB, "day");
    const hold = () =>
      until(
        "a lease",
        () => {
          move(bench, MIB / 4);
          return lent(settings) > 0;
        },
        PSQL,
      );
    await hold();
    assert.ok(lent(settings) <= 50 * MIB, "a twentieth at most");
    await bench.users.leaveFleet();
    assert.equal(lent(settings), 0);
    bench.restart();
    await bench.adopt([listener("edge", "alice")]);
    await hold();
    const before = lent(settings);
    database.in(settings, "UPDATE weir.lease SET epoch = 0"); // as if an earlier process had held it
    const left = bench.users.leaveFleet();
    bench.restart();
    await left;
    assert.equal(lent(settings), before);
    await bench.adopt([listener("edge", "alice")]);
    await until(
      "it is settled",
      () => database.in(settings, "SELECT count(*) FROM weir.lease WHERE epoch = 0") === "0",
      PSQL,
    );
  },
);

test("without the database a user goes on as far as the operator wants", { skip }, async () => {
  const settings = await database.fresh();
  using stop = new Bench({ fleet: { ...settings("fra-1"), onPartition: "stop" } });
  using allow = new Bench({ fleet: { ...settings("ams-1"), onPartition: "allow" } });
  await stop.adopt([listener("edge", "alice")]);
  await allow.adopt([listener("edge")]);
  await lend(stop, 100 * MIB, "month");
  await until("the quota there", () => allow.first().limits.quota?.totalBytes === 100 * MIB);
  for (const bench of [stop, allow]) move(bench, MIB);
  await until(
    "both hold a lease",
    () => {
      for (const bench of [stop, allow]) move(bench, MIB / 16);
      return database.in(settings("x"), "SELECT count(*) FROM weir.lease") === "2";
    },
    PSQL,
  );
  const moved = () => stop.first().downloadBytes + allow.first().downloadBytes;
  await database.server.kill();
  await until("stopped", () => {
    move(stop, MIB / 4);
    return stop.first().status === "limited";
  });
  await until("it goes on", () => {
    for (let piece = 0; piece < 40; piece++) move(allow, MIB / 4);
    return allow.first().downloadBytes > 30 * MIB;
  });
  assert.equal(allow.first().status, "active");
  await database.server.start();
  await until("back again", () => stop.first().status === "active", { withinMs: 30_000 });
  await until("all is in the ledger", () => totalOf(settings("x")) > 31 * MIB, { ...PSQL, withinMs: 30_000 });
  assert.ok(totalOf(settings("x")) >= moved() / 2);
});
