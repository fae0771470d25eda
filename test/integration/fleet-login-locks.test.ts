/** Locks that a login holds, in a transaction that stays open or without one: no node waits for them longer than a moment. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Client } from "pg";
import { proveSeal } from "#fleet/listeners.ts";
import { userJson } from "#fleet/rows.ts";
import { LoginNode, type Logins, makeLogins, openLogins, SEAL } from "../support/fleet-logins.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";

const skip = noPostgres ?? false;
let database: FleetDatabase;
before(async () => {
  if (noPostgres !== null) return;
  database = await startFleetDatabase();
  makeLogins(database);
});
after(() => database?.[Symbol.asyncDispose]());

const QUOTA = { quota: { total_bytes: 1_000_000_000, reset: "never", window_seconds: 0 }, ip_limit: 3 };

/** What nodes and operators do all day; each statement has the three seconds of a node. */
async function allGoesOn({ honest, owner, edge, side, alice, bob }: Logins, round: number): Promise<void> {
  const seq = round * 10;
  await honest.beat();
  assert.equal(await honest.upload([{ seq, user: alice, upload: 1 }], { after: seq - 10 }), seq);
  await honest.one("SELECT weir.fold(1000)");
  await honest.one("SELECT weir.tidy()");
  assert.equal(await honest.totalOf(alice), round);
  assert.equal((await honest.leases([alice, bob])).length, 2);
  const slots = [alice, bob].map((user) => ({ user, ip: "198.51.100.1", count: 1 }));
  assert.equal((await honest.slots(slots, true)).length, 2);
  await proveSeal(honest.client, SEAL);
  for (const book of [edge, side]) {
    const [user = assert.fail("no user")] = book.users.values();
    const record = { ...userJson(user, SEAL), limits: QUOTA, enabled: false };
    const revision = book.revision + round;
    const { rows } = await owner.query(
      "SELECT * FROM weir.commit_change($1, $2, $3, $4, 'update', $5, 'n')",
      [book.listener, revision - 1, revision, user.id, record],
    );
    assert.equal(rows[0]?.done, true, "a user is shut out");
  }
}

/** As that login, in a transaction that does not end. */
async function held(client: Client, text: string, values: readonly unknown[] = []): Promise<void> {
  await client.query("BEGIN");
  await client.query(text, [...values]);
}

test("a transaction that stays open holds up no node and no change", { skip }, async () => {
  await using at = await openLogins(database);
  const { mallory, honest, alice, bob, owner } = at;
  await owner.query("UPDATE weir.app_user SET limits = $1", [QUOTA]);
  let round = 0;
  await allGoesOn(at, ++round);
  const self = [mallory.id, mallory.instance];
  const columns = "'{9}', $3, '{1}', '{0}', '{1}', '{5}', '{0}'";
  const holds: readonly (readonly [string, readonly unknown[]])[] = [
    ["SELECT weir.prove_seal('x')", []],
    ["SELECT weir.fold(1000)", []],
    ["SELECT * FROM weir.totals(-1)", []],
    [`SELECT weir.upload($1, $2, 1, 0, ${columns})`, [...self, [bob]]],
    ["SELECT weir.take_leases($1, $2, $3, '{1,1}', '{5000000,5000000}')", [...self, [alice, bob]]],
    ["SELECT weir.hold_slots($1, $2, true, $3, '{192.0.2.7}', '{1}', '{0}')", [...self, [bob]]],
    ["SELECT weir.enroll($1, 'mallory', '', '{}', '0', 1, $2)", self],
    ["SELECT weir.tidy()", []],
  ];
  for (const [text, values] of holds) {
    await honest.upload([{ seq: round * 10 + 1, user: alice, upload: 0 }], { after: round * 10 });
    await held(mallory.client, text, values);
    try {
      await allGoesOn(at, ++round);
      const another = new LoginNode(await at.open("honest"), `n${round}`);
      assert.equal(await another.enroll(), null);
    } catch (error) {
      throw new Error(text, { cause: error });
    }
    await mallory.client.query("ROLLBACK");
  }
  await held(mallory.client, "SELECT weir.fold(1000)");
  const { rows } = await owner.query(
    "SELECT * FROM weir.commit_change('edge', $1, $2, $3, 'delete', NULL, 'n')",
    [at.edge.revision + round, at.edge.revision + round + 1, alice],
  );
  assert.equal(rows[0]?.done, true, "a user is deleted");
  await mallory.client.query("ROLLBACK");
});

test(
  "partitions come and go beside a reader, and a new hour beside who makes it and waits",
  { skip },
  async () => {
    await using at = await openLogins(database);
    const { mallory, honest, owner, alice } = at;
    const count = async (): Promise<number> =>
      Number(
        (await owner.query("SELECT count(*) FROM pg_inherits WHERE inhparent = 'weir.ledger'::regclass"))
          .rows[0].count,
      );
    await owner.query("SET lock_timeout = '2s'");
    await held(mallory.client, "SELECT * FROM weir.totals(-1)");
    const before = await count();
    await owner.query("SELECT weir.make_partition(now() + interval '30 hours')");
    assert.equal(await count(), before + 1, "a backup is such a reader");
    await mallory.client.query("ROLLBACK");
    // The hour that no session has made yet: what comes is kept with the newest.
    for (const { relname } of (
      await owner.query(
        "SELECT c.relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'weir.ledger'::regclass",
      )
    ).rows)
      await owner.query(`DROP TABLE weir.${relname}`);
    await owner.query("SELECT weir.make_partition(now() - interval '5 hours')");
    await mallory.upload([{ seq: 1, user: at.bob, upload: 1 }]);
    await owner.query(
      `DROP TABLE weir.${(await owner.query("SELECT max(c.relname::text) AS name FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'weir.ledger'::regclass")).rows[0].name}`,
    );
    await held(
      mallory.client,
      "SELECT weir.upload($1, $2, 1, 1, '{2}', $3, '{1}', '{0}', '{1}', '{5}', '{0}')",
      [mallory.id, mallory.instance, [at.bob]],
    );
    await honest.upload([{ seq: 1, user: alice, upload: 11 }]);
    assert.equal(await honest.totalOf(alice), 11);
    await honest.one("SELECT weir.fold(1000)");
    await honest.one("SELECT weir.tidy()");
    await honest.upload([{ seq: 2, user: alice, upload: 11 }], { after: 1 });
    await mallory.client.query("ROLLBACK");
    await honest.upload([{ seq: 3, user: alice, upload: 11 }], { after: 2 });
    while (Number(await honest.one("SELECT weir.fold(1000)")) > 0);
    assert.equal(await honest.totalOf(alice), 33);
  },
);

test("locks by number, which any login can take, keep no node out", { skip }, async () => {
  await using at = await openLogins(database);
  const { honest, owner, alice } = at;
  await owner.query("UPDATE weir.app_user SET limits = $1", [QUOTA]);
  const passerby = await at.open("passerby");
  for (const name of ["weir enroll", "weir fold", "weir partitions", `weir node ${honest.id}`])
    await passerby.query("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", [name]);
  void passerby
    .query("SELECT pg_advisory_lock(hashtextextended($1, 0))", [`weir node ${honest.id}`])
    .catch(() => {});
  await allGoesOn(at, 1);
  assert.equal(
    await owner
      .query("SELECT upload FROM weir.usage_total WHERE user_id = $1", [alice])
      .then(({ rows }) => rows[0]?.upload),
    "1",
  );
  await honest.client.end();
  const again = new LoginNode(await at.open("honest"), "honest", honest.id);
  assert.equal(await again.enroll(2), null, "a restart is no copy");
  const other = new LoginNode(await at.open("honest"), "other");
  assert.equal(await other.enroll(), null);
  const copy = new LoginNode(await at.open("honest"), "other", other.id);
  assert.equal(await copy.enroll(2), "copied", "a copy is one");
  assert.equal(await new LoginNode(await at.open("honest"), "other").enroll(), "named");
  assert.equal(await new LoginNode(await at.open("mallory"), "other", randomUUID()).enroll(), "named");
});
