import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Client } from "pg";
import { parsePostgresUri } from "#lib/postgres-uri.ts";
import { noPostgres, startPostgres, type TestPostgres } from "../support/postgres.ts";
import { checkDatabase } from "#fleet/check.ts";
import { connect, type DatabaseOptions } from "#fleet/connection.ts";
import { migrate, refuseOtherSchema, schemaVersion } from "#fleet/migrate.ts";
import { OLDEST, VERSIONS } from "#fleet/schema/versions.ts";
import { LoginNode } from "../support/fleet-logins.ts";
import { until } from "../support/until.ts";
import { Bench, listener } from "../support/users-bench.ts";

let server: TestPostgres;
const skip = noPostgres ?? false;

before(async () => {
  if (noPostgres === null) server = await startPostgres();
});
after(() => server?.[Symbol.asyncDispose]());

function optionsOf(dsn: string, ca: string | null = server.authority.cert): DatabaseOptions {
  const uri = parsePostgresUri(dsn);
  assert.ok(typeof uri !== "string", typeof uri === "string" ? uri : "");
  return { uri, ca, name: "weir test", statementTimeoutMs: 3000 };
}

async function withClient<T>(options: DatabaseOptions, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect(options);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

test("the schema is made once, by one program at a time, and a trial leaves nothing", { skip }, async () => {
  const options = optionsOf(server.dsn());
  await withClient(options, async (client) => {
    await assert.rejects(refuseOtherSchema(client), /no schema weir yet: run weir fleet migrate/);
    assert.deepEqual(await migrate(client, { isDry: true }), { from: 0, to: VERSIONS.length });
    assert.equal(await schemaVersion(client), 0);
  });
  const both = await Promise.all(
    [1, 2].map(() => withClient(options, (client) => migrate(client, { isDry: false }))),
  );
  assert.deepEqual(
    both.map(({ from }) => from).sort((a, b) => a - b),
    [0, VERSIONS.length],
  );
  await withClient(options, async (client) => {
    await refuseOtherSchema(client);
    server.sql("INSERT INTO weir.version VALUES (99)");
    for (const work of [refuseOtherSchema(client), migrate(client, { isDry: false })])
      await assert.rejects(work, /schema has version 99, this weir knows \d+: update weir on this node/);
    server.sql("DELETE FROM weir.version WHERE number = 99");
  });
});

/** A database as a program of that version has left it. */
async function laid(client: Client, version: number): Promise<void> {
  await client.query("CREATE SCHEMA weir; CREATE TABLE weir.version (number integer PRIMARY KEY)");
  for (const [at, text] of VERSIONS.slice(0, version).entries()) {
    await client.query(text);
    await client.query("INSERT INTO weir.version (number) VALUES ($1)", [at + 1]);
  }
}

test(
  "nodes go on before, during and after a migration from the oldest version they know",
  { skip },
  async () => {
    server.sql("CREATE DATABASE older");
    server.sql("CREATE DATABASE oldest");
    const dsn = server.dsn("postgres", undefined, "older");
    const node = { dsn, dsnFile: null, ca: server.authority.cert, node: "fra-1", address: "x", labels: {} };
    using bench = new Bench({ fleet: { ...node, onPartition: "allow" } });
    await withClient(optionsOf(dsn), async (client) => {
      await laid(client, OLDEST);
      const { missing, lines } = await checkDatabase(client, []);
      assert.deepEqual(missing, []);
      assert.match(lines.join("\n"), /schema: version \d+ of \d+, weir fleet migrate brings the rest/);
      const total = async (): Promise<string | undefined> => {
        const { rows } = await client.query<{ sum: string }>("SELECT sum(upload) FROM weir.totals(-1)");
        return rows[0]?.sum;
      };
      await bench.adopt([listener("edge", "alice")]);
      const { id } = bench.first();
      const entries = [1, 2, 3].map((seq) => ({ seq, user: id, upload: 10 }));
      const other = new LoginNode(client, "other");
      await other.enroll();
      await other.upload(entries);
      await client.query("SELECT weir.fold(1)");
      bench.meterOf(id).reserve("upload", 1000);
      await until("it is there", async () => (await total()) === "1030");
      const before = bench.admin.fleet?.seen.database;
      await withClient(optionsOf(dsn), async (reader) => {
        await reader.query("BEGIN; SELECT FROM weir.ledger; SELECT FROM weir.app_user"); // as a backup does
        await withClient(optionsOf(dsn), (owner) =>
          assert.rejects(migrate(owner, { isDry: false }), /lock timeout/),
        );
        assert.equal(await schemaVersion(client), OLDEST);
      });
      const { to } = await withClient(optionsOf(dsn), (owner) => migrate(owner, { isDry: false }));
      assert.equal(to, VERSIONS.length);
      await other.upload([...entries, { seq: 4, user: id, upload: 500 }]);
      bench.meterOf(id).reserve("upload", 7);
      await until("what came later, once", async () => (await total()) === "1537");
      while (Number(await other.one("SELECT weir.fold(1000)")) > 0);
      assert.equal(await total(), "1537");
      await bench.admin.fleet?.view();
      assert.deepEqual(bench.admin.fleet?.seen.database, before, "it was never away");
      assert.equal(await other.enroll(2), null, "an earlier program does not know the difference");
    });
    await withClient(optionsOf(server.dsn("postgres", undefined, "oldest")), async (client) => {
      await laid(client, OLDEST - 1);
      await assert.rejects(
        refuseOtherSchema(client),
        /has version 5, this weir needs 6 at least: run weir fleet migrate/,
      );
    });
  },
);

test("a check says role, version, listeners and what is missing", { skip }, async () => {
  server.sql("CREATE ROLE outsider LOGIN PASSWORD 'outside'");
  server.sql("CREATE ROLE fra LOGIN PASSWORD 'fra' IN ROLE weir_node");
  const ofOutsider = await withClient(optionsOf(server.dsn("outsider", "outside")), (client) =>
    checkDatabase(client, ["edge"]),
  );
  assert.match(ofOutsider.missing.join(), /^GRANT weir_node TO outsider;/);
  const ofNode = await withClient(optionsOf(server.dsn("fra", "fra")), (client) =>
    checkDatabase(client, ["edge"]),
  );
  assert.deepEqual(ofNode.missing, [
    "weir fleet allow fra edge (with -writes to change users), by an administrator",
  ]);
  server.sql("SELECT weir.allow('fra', '{edge}', false)");
  const good = await withClient(optionsOf(server.dsn("fra", "fra")), (client) =>
    checkDatabase(client, ["edge"]),
  );
  assert.deepEqual(good.missing, []);
  assert.match(
    good.lines.join("\n"),
    /role weir_node[^]*latency: \d+ ms[^]*edge: 0 users, may not change them/,
  );
});

test("a server that cannot prove who it is gets no password", { skip }, async () => {
  const refused = async (options: DatabaseOptions, message: RegExp) =>
    assert.rejects(connect(options), (error: unknown) => {
      assert.ok(error instanceof Error);
      assert.match(error.message, message);
      assert.ok(!error.message.includes("admin-password"), error.message);
      return true;
    });
  const dsn = server.dsn();
  await refused(optionsOf(dsn, null), /authority that is not trusted; svc\.fleet\.ca names ours/);
  await server.present({ names: ["db.example.com"] });
  await refused(optionsOf(dsn), /certificate is for another name/);
  await withClient(optionsOf(`${dsn}?sslmode=verify-ca`), (client) => client.query("SELECT 1"));
  await server.present({ names: ["localhost"], validForMs: -1000 });
  await refused(optionsOf(dsn), /certificate has expired/);
  await refused(optionsOf(`${dsn}?sslmode=verify-ca`), /certificate has expired/);
  await server.present({ names: ["localhost", "127.0.0.1"] });
  await withClient(optionsOf(dsn.replace("localhost", "127.0.0.1")), (client) => client.query("SELECT 1"));
  await refused(optionsOf(dsn.replace("admin-password", "other")), /user or password is wrong/);
  await refused(optionsOf(server.dsn("postgres", undefined, "nowhere")), /no such database/);
});

test("the first server of several that takes writes is taken", { skip }, async () => {
  const dsn = server.dsn().replace("@localhost", "@localhost:1,localhost");
  await withClient(optionsOf(dsn), (client) => client.query("SELECT 1"));
  server.sql("CREATE DATABASE frozen");
  server.sql("ALTER DATABASE frozen SET default_transaction_read_only = on");
  const frozen = dsn.replace(/postgres$/, "frozen");
  await assert.rejects(
    connect(optionsOf(frozen)),
    /localhost:1: nothing listens there; localhost:\d+: a replica/,
  );
  await withClient(optionsOf(`${frozen}?target_session_attrs=any`), (client) => client.query("SELECT 1"));
});
