/** What users moved on the nodes of a fleet: counted once, whatever happens between a node and the database. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Client } from "pg";
import { connect } from "#fleet/connection.ts";
import { publishListener } from "#fleet/listeners.ts";
import { TokenSeal } from "#fleet/seal.ts";
import { databaseOptions } from "#fleet/source.ts";
import { aBook } from "../support/fleet-users.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { randomFrom } from "../support/random.ts";
import { until } from "../support/until.ts";
import { Bench, listener } from "../support/users-bench.ts";

const skip = noPostgres ?? false;
let database: FleetDatabase;
before(async () => {
  if (noPostgres === null) database = await startFleetDatabase();
});
after(() => database?.[Symbol.asyncDispose]());

/** Between two looks that psql takes: a process each. */
const PSQL = { everyMs: 150 };

const EDGE = [listener("edge", "alice")];

async function uploadOf(bench: Bench): Promise<number> {
  await bench.admin.fleet?.freshen();
  return bench.first().uploadBytes;
}

test("every node shows what all have counted, and a reset is one for all", { skip }, async () => {
  const settings = await database.fresh();
  using a = new Bench({ fleet: settings("fra-1") });
  using b = new Bench({ fleet: settings("ams-1") });
  await a.adopt(EDGE);
  await b.adopt([listener("edge")]);
  const { id } = a.first();
  assert.equal(b.first().id, id);
  a.meterOf(id).reserve("upload", 1000);
  b.meterOf(id).reserve("upload", 200);
  for (const bench of [a, b]) await until("both sums", async () => (await uploadOf(bench)) === 1200);
  const reset = await a.admin.resetTraffic(id, a.revision("edge"));
  assert.equal(reset.uploadBytes, 0);
  await until("the reset on b", () => b.first().trafficGeneration === 2);
  assert.equal(await uploadOf(b), 0);
  b.meterOf(id).reserve("upload", 7);
  for (const bench of [a, b]) await until("the new sum", async () => (await uploadOf(bench)) === 7);
});

test("nothing is lost or doubled by restarts and by a database that is away", { skip }, async () => {
  const settings = (await database.fresh())("fra-1");
  using bench = new Bench({ fleet: settings });
  await bench.adopt(EDGE);
  const { id } = bench.first();
  bench.meterOf(id).reserve("upload", 1000);
  bench.restart(); // at once: what was counted is in the state file
  await bench.adopt(EDGE);
  assert.equal(bench.first().uploadBytes, 1000);
  await database.server.kill();
  bench.meterOf(id).reserve("upload", 30);
  await until("it is written", async () => {
    await bench.users.checkpoint();
    return true;
  });
  bench.restart();
  await bench.adopt(EDGE);
  assert.equal(bench.first().uploadBytes, 1030, "without the database");
  bench.meterOf(id).reserve("upload", 4);
  await database.server.start();
  const total = () => database.in(settings, "SELECT sum(upload) FROM weir.totals(-1)");
  await until(
    () => `all is there: ${total()}`,
    () => total() === "1034",
    { ...PSQL, withinMs: 30_000 },
  );
  assert.equal(await uploadOf(bench), 1034);
});

test(
  "a node's clock may be wrong by an hour: what was moved is in the database's hour",
  { skip },
  async () => {
    for (const wrongMs of [-3_600_000, 3_600_000]) {
      const settings = (await database.fresh())("fra-1");
      using bench = new Bench({ fleet: settings });
      bench.nowMs = wrongMs;
      await bench.adopt(EDGE);
      const hour = "date_trunc('hour', clock_timestamp())";
      const since = database.in(settings, `SELECT ${hour}`);
      bench.meterOf(bench.first().id).reserve("upload", 5);
      const rows = () =>
        database.in(settings, `SELECT hour BETWEEN '${since}' AND ${hour}, upload FROM weir.usage_hour`);
      await until(
        () => `it is folded: ${rows()}`,
        () => rows() === "t|5",
        PSQL,
      );
    }
  },
);

const EPOCHS = 4;

interface Batch {
  readonly after: number;
  readonly seqs: readonly number[];
}

test(
  "uploads that are doubled, reordered, replayed and cut change no total, and none goes back",
  { skip },
  async () => {
    const settings = (await database.fresh())("fra-1");
    const book = aBook("edge", "alice", "bob");
    const [alice = "", bob = ""] = book.users.keys();
    const [node, instance] = [randomUUID(), randomUUID()];
    const open = () => connect(databaseOptions(settings, {}));
    const client = await open();
    const reader = await open();
    const seal = new TokenSeal("s".repeat(32));
    await publishListener(client, book, { node: "x", seal, traffic: new Map() });
    await client.query("SELECT weir.enroll($1, 'fra-1', '', '{}', '0', 9, $2)", [node, instance]);
    const upload = async (by: Client, epoch: number, { after: behind, seqs }: Batch): Promise<number> => {
      const of = <T>(value: (seq: number) => T) => seqs.map(value);
      const { rows } = await by.query<{ last: string }>(
        "SELECT weir.upload($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS last",
        [
          node,
          instance,
          epoch,
          behind,
          seqs,
          of((seq) => (seq % 3 === 0 ? bob : alice)),
          of(() => 1),
          of((seq) => seq * 1000),
          of(() => 1),
          of((seq) => seq),
          of(() => 1),
        ],
      );
      return Number(rows[0]?.last);
    };
    const random = randomFrom(7);
    let expected = 0;
    let seen = 0;
    const look = async (): Promise<number> => {
      const { rows } = await reader.query<{ sum: string }>(
        "SELECT coalesce(sum(upload), 0) AS sum FROM weir.totals(-1)",
      );
      const sum = Number(rows[0]?.sum);
      assert.ok(sum >= seen, `${sum} behind ${seen}`);
      return (seen = sum);
    };
    for (let epoch = 1; epoch <= EPOCHS; epoch++) {
      const batches: Batch[] = [];
      let seq = 0;
      for (let at = 0; at < 6; at++) {
        const before = seq;
        const seqs = Array.from({ length: 1 + random(9) }, () => (seq += 1 + random(3)));
        batches.push({ after: before, seqs });
        expected += seqs.reduce((sum, one) => sum + one, 0);
      }
      // Every batch is sent again and again in any order; those in their order get through, and a fold may come between.
      for (let at = 0; at < batches.length;) {
        const chosen = batches[random(batches.length)];
        assert.ok(chosen !== undefined);
        const kind = random(5);
        if (kind === 0) await client.query("SELECT weir.fold(5)");
        else if (kind === 1) {
          await client.query("BEGIN");
          await upload(client, epoch, chosen);
          await client.query("ROLLBACK"); // cut before the end
        } else await upload(client, epoch, kind === 2 ? (batches[at] ?? chosen) : chosen);
        if (kind === 3) await upload(client, epoch, chosen); // its answer was lost
        while (
          at < batches.length &&
          (await upload(client, epoch, { after: 0, seqs: [] })) >= (batches[at]?.seqs.at(-1) ?? 0)
        )
          at++;
        await look();
      }
    }
    assert.equal(await look(), expected);
    for (let left = 1; left > 0;)
      left = Number((await client.query("SELECT weir.fold(100000) AS left")).rows[0].left);
    assert.equal(await look(), expected);
    assert.equal(database.in(settings, "SELECT sum(upload) FROM weir.usage_total"), String(expected));
    assert.equal(database.in(settings, "SELECT sum(upload) FROM weir.usage_hour"), String(expected));
    await Promise.all([client.end(), reader.end()]);
  },
);

test("old partitions go when they are folded, and with them no total", { skip }, async () => {
  const settings = (await database.fresh())("fra-1");
  const sql = (text: string) => database.in(settings, text);
  sql("SELECT weir.make_partition(now() - interval '5 hours')");
  sql("SELECT weir.make_partition(now() - interval '4 hours')");
  const node = randomUUID();
  sql(`INSERT INTO weir.ledger_mark VALUES ('${node}', 1, 1)`);
  sql(`INSERT INTO weir.ledger_came VALUES ('${node}', 1)`);
  sql(
    `INSERT INTO weir.ledger VALUES (now() - interval '4 hours', '${node}', 1, 1, '${randomUUID()}', 1, now(), 1, 5, 5)`,
  );
  assert.equal(sql("SELECT weir.tidy()"), "1", "the one with an entry that no fold has taken stays");
  sql("SELECT weir.fold(100)");
  assert.equal(sql("SELECT weir.tidy()"), "1");
  assert.equal(sql("SELECT weir.tidy()"), "0");
});
