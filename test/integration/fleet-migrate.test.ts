import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Client } from "pg";
import { parsePostgresUri } from "#lib/postgres-uri.ts";
import { noPostgres, startPostgres, type TestPostgres } from "../support/postgres.ts";
import { checkDatabase } from "#fleet/check.ts";
import { connect, type DatabaseOptions } from "#fleet/connection.ts";
import { migrate, refuseOtherSchema, schemaVersion } from "#fleet/migrate.ts";
import { VERSIONS } from "#fleet/schema/versions.ts";

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
