/** What the role of a node may: by logging in as it, and trying. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { aBook } from "../support/fleet-users.ts";
import { publishListener, wholeListener } from "#fleet/listeners.ts";
import { userJson } from "#fleet/rows.ts";
import { TokenSeal } from "#fleet/seal.ts";

const skip = noPostgres ?? false;
const seal = new TokenSeal("s".repeat(32));
const edge = aBook("edge", "alice");
const side = aBook("side", "bob");
let database: FleetDatabase;

before(async () => {
  if (noPostgres !== null) return;
  database = await startFleetDatabase();
  await database.as(null, async (client) => {
    for (const book of [edge, side])
      await publishListener(client, book, { node: "test", seal, traffic: new Map() });
  });
  database.login("reader", ["edge"], false);
  database.login("writer", ["edge"], true);
});
after(() => database?.[Symbol.asyncDispose]());

test("a node's login reads the users of its own listeners and of no others", { skip }, async () => {
  await database.as("reader", async (client) => {
    assert.equal((await wholeListener(client, "edge", seal))?.users.size, 1);
    assert.equal(await wholeListener(client, "side", seal), null);
    for (const table of ["listener", "app_user", "change", "usage_total"]) {
      const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM weir.${table}`);
      assert.equal(rows[0]?.count, "1", table);
    }
  });
});

test("what it may not is refused by the database", { skip }, async () => {
  const alice = [...edge.users.values()][0];
  assert.ok(alice !== undefined);
  const record = JSON.stringify(userJson(alice, seal));
  const denied: readonly string[] = [
    "SELECT * FROM weir.audit",
    "SELECT * FROM weir.access",
    "SELECT login FROM weir.node",
    "SELECT instance FROM weir.node",
    "UPDATE weir.app_user SET enabled = false",
    "DELETE FROM weir.app_user",
    "INSERT INTO weir.access VALUES ('reader', '*', true)",
    "UPDATE weir.listener SET revision = revision + 1",
    "INSERT INTO weir.change (listener, revision, kind) VALUES ('edge', 1, 'x')",
    "UPDATE weir.usage_total SET upload = 0",
    "UPDATE weir.usage_hour SET upload = 0",
    "SELECT * FROM weir.ledger",
    "UPDATE weir.lease SET bytes = 0",
    `SELECT weir.quota_used('${alice.id}', 1, 'never', 0)`,
    "DELETE FROM weir.ledger_mark",
    "DELETE FROM weir.slot",
    "INSERT INTO weir.link VALUES (gen_random_uuid(), 'edge', '{}')",
    `SELECT * FROM weir.live_slots('${alice.id}')`,
    "UPDATE weir.fold_count SET folds = 0",
    "SELECT weir.make_partition(now())",
    "UPDATE weir.node SET epoch = 0",
    "UPDATE weir.seal SET proof = ''",
    `SELECT weir.put_user('edge', '${record}')`,
    "SELECT weir.allow('reader', '{*}', true)",
    `SELECT weir.commit_change('edge', ${edge.revision}, ${edge.revision + 1}, '${alice.id}', 'x', NULL, 'n')`,
    "SELECT weir.publish_listener('new', 'i', 'vless', 1, '[]', 'n')",
    "SELECT weir.drain('n', true)",
    "SELECT weir.forget('n')",
    "CREATE TABLE weir.mine (a integer)",
    "ALTER TABLE weir.app_user DISABLE ROW LEVEL SECURITY",
    "DROP FUNCTION weir.beat",
    "SET ROLE weir_admin",
    "SET SESSION AUTHORIZATION postgres",
  ];
  await database.as("reader", async (client) => {
    for (const text of denied)
      await assert.rejects(client.query(text), (error: unknown) => {
        assert.ok(error instanceof Error && "code" in error, String(error));
        assert.equal(error.code, "42501", `${text}: ${error.message}`);
        return true;
      });
  });
  await database.as("writer", async (client) => {
    const change = (tag: string, id: string) =>
      client.query("SELECT * FROM weir.commit_change($1, $2, $3, $4, 'delete', NULL, 'n')", [
        tag,
        edge.revision,
        edge.revision + 1,
        id,
      ]);
    await assert.rejects(change("side", alice.id), /may not change users of listener side/);
    const [bob] = side.users.keys();
    assert.ok(bob !== undefined);
    assert.deepEqual((await change("edge", bob)).rows, [{ done: true, present: String(edge.revision + 1) }]);
  });
  assert.equal(database.server.sql("SELECT name FROM weir.app_user ORDER BY name"), "alice\nbob");
});

test("functions of the schema are not led astray by the caller's own tables", { skip }, async () => {
  await database.as("reader", async (client) => {
    await client.query("CREATE TEMPORARY TABLE access (login name, listener text, may_write boolean)");
    await client.query("INSERT INTO access VALUES ('reader', '*', true)");
    await client.query("SET search_path = pg_temp, weir");
    const { rows } = await client.query("SELECT weir.sees('side') AS sees, weir.may_write('edge') AS writes");
    assert.deepEqual(rows, [{ sees: false, writes: false }]);
  });
  const loose = database.server.sql(
    `SELECT proname FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'weir' AND
     NOT (prosecdef AND proconfig::text LIKE '%search_path=weir, pg_temp%')`,
  );
  assert.equal(loose, "");
});

test(
  "a node is enrolled once at a time, and a copied state file is noticed by its epoch",
  { skip },
  async () => {
    const id = randomUUID();
    const enroll = (epoch: number, instance: string, name = "fra-1") => ({
      text: "SELECT weir.enroll($1, $2, '', '{}', '0', $3, $4) AS fault",
      values: [id, name, epoch, instance],
    });
    const [first, second] = [randomUUID(), randomUUID()];
    await database.as("reader", async (one) => {
      assert.deepEqual((await one.query(enroll(5, first))).rows, [{ fault: null }]);
      await database.as("reader", async (two) => {
        assert.deepEqual(
          (await two.query(enroll(6, second))).rows,
          [{ fault: "copied" }],
          "the first one lives",
        );
      });
      await database.as("writer", async (two) => {
        const { rows } = await two.query<{ fault: string }>(enroll(7, second));
        assert.match(rows[0]?.fault ?? "", /another login/);
      });
      const beat = `SELECT weir.beat($1, $2, '{}', '{}', '{"connections": 0}') AS is_draining`;
      assert.deepEqual((await one.query(beat, [id, first])).rows, [{ is_draining: false }]);
      assert.deepEqual((await one.query(beat, [id, second])).rows, [{ is_draining: null }]);
    });
    await database.as("reader", async (two) => {
      assert.deepEqual(
        (await two.query(enroll(5, second))).rows,
        [{ fault: "copied" }],
        "an epoch is used once",
      );
      assert.deepEqual((await two.query(enroll(6, second))).rows, [{ fault: null }]);
      const other = { ...enroll(1, second), values: [randomUUID(), "fra-1", 1, second] };
      assert.deepEqual((await two.query(other)).rows, [{ fault: "named" }]);
    });
  },
);
