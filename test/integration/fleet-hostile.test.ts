/** A node's login that turns against its fleet: what it writes costs what it may write, and no other node, user or listener. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Client } from "pg";
import { connect } from "#fleet/connection.ts";
import { fetchNodes } from "#fleet/nodes.ts";
import { servingNodes } from "#fleet/links.ts";
import { userJson } from "#fleet/rows.ts";
import { TokenSeal } from "#fleet/seal.ts";
import { databaseOptions } from "#fleet/source.ts";
import { aUser } from "../support/fleet-users.ts";
import { type FleetDatabase, patient, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { Bench, listener } from "../support/users-bench.ts";

const skip = noPostgres ?? false;
const BOTH = [listener("edge", "alice"), listener("side", "bob")];
let database: FleetDatabase;
before(async () => {
  if (noPostgres !== null) return;
  database = await startFleetDatabase();
  database.server.sql("CREATE ROLE mallory LOGIN PASSWORD 'mallory' IN ROLE weir_node");
});
after(() => database?.[Symbol.asyncDispose]());

/** A fleet of one node with both listeners, and a login that may change users of `side`. */
async function world() {
  const settings = await database.fresh();
  const bench = new Bench({ fleet: settings("fra-1") });
  await bench.adopt(BOTH);
  await until("the database", () => bench.admin.fleet?.seen.database.isUp === true);
  database.in(settings("test"), "SELECT weir.allow('mallory', '{side}', true)");
  const { dsn, ...rest } = settings("evil", "mallory");
  const mallory = await connect(databaseOptions({ ...rest, dsn: patient(dsn ?? "") }, {}));
  const owner = await connect(
    databaseOptions({ ...settings("test"), dsn: patient(settings("test").dsn ?? "") }, {}),
  );
  const isFollowed = async (name: string): Promise<void> => {
    const { id, revision } = bench.admin.users("edge")[0] ?? assert.fail("no user of edge");
    await bench.admin.update(id, { revision, name });
    assert.equal(bench.admin.users("edge")[0]?.name, name);
  };
  return {
    bench,
    mallory,
    owner,
    isFollowed,
    async [Symbol.asyncDispose]() {
      bench[Symbol.dispose]();
      await Promise.all([mallory.end(), owner.end()]);
    },
  };
}

async function say(mallory: Client, [id, instance]: readonly string[], applied: string, links: string) {
  const stats = `{"connections": 1, "upload": "x"}`;
  await mallory.query("SELECT weir.enroll($1, 'evil', '', 'null', '0', 1, $2)", [id, instance]);
  await mallory.query("SELECT weir.beat($1, $2, $3, $4, $5)", [id, instance, applied, links, stats]);
}

test(
  "what a node says of itself keeps no other from its database, nor users from their links",
  { skip },
  async () => {
    await using at = await world();
    const self = [randomUUID(), randomUUID()];
    for (const applied of ['{"edge": "x"}', "[]", '{"edge": 1e40}', '{"edge": null}', "7"])
      for (const links of ['{"side": null}', '{"side": {"": 5}}']) {
        await say(at.mallory, self, applied, links);
        const nodes = await fetchNodes(at.owner, "");
        assert.deepEqual(
          nodes.map(({ name }) => name),
          ["evil", "fra-1"],
        );
        assert.deepEqual(servingNodes(nodes)[0]?.links, { side: {} });
      }
    await until("it among the nodes", async () => (await at.bench.admin.fleet?.view())?.nodes.length === 2);
    await new Promise((resolve) => setTimeout(resolve, 4_000)); // a beat reads the nodes
    assert.equal(at.bench.admin.fleet?.seen.database.isUp, true);
    await at.isFollowed("ann");
  },
);

test("a user who cannot be served costs himself, also after a restart", { skip }, async () => {
  await using at = await world();
  const { bench, mallory } = at;
  const seal = new TokenSeal("x".repeat(32));
  const [bob = assert.fail("no bob")] = bench.admin.users("side");
  const credential = bench.admin.user(bob.id)?.credential ?? "";
  let revision = bench.revision("side");
  const put = async (change: object, next = revision + 1): Promise<void> => {
    const user = aUser(`u${next}`);
    const record = JSON.stringify({ ...userJson(user, seal), ...change });
    await mallory.query("SELECT weir.commit_change('side', $1, $2, $3, 'create', $4, 'evil')", [
      revision,
      next,
      user.id,
      record,
    ]);
    revision = next;
  };
  await put({ token_sealed: "AAAA" });
  await put({ credential, created_at: 2e12, updated_at: 2e12 });
  await put({ name: "BOB", created_at: 2e12, updated_at: 2e12 });
  await put({ flow: "strange" });
  await put({ limits: { quota: "much" } });
  await put({});
  const isRight = async (): Promise<void> => {
    await until("the last one", () => bench.revision("side") === revision);
    assert.deepEqual(
      bench.admin.users("side").map(({ name }) => name),
      ["bob", `u${revision}`],
    );
    const served = bench.inbounds.findLast(({ name }) => name === "side")?.users ?? [];
    assert.equal(new Set(served.map((user) => user.credential)).size, 2);
    await at.isFollowed(`after ${revision}`);
  };
  await isRight();
  bench.restart();
  await bench.adopt(BOTH);
  await isRight();
  const whole = revision;
  await put({}, Number.MAX_SAFE_INTEGER + 5);
  revision = whole;
  await new Promise((resolve) => setTimeout(resolve, 3_000)); // it has been asked for
  await at.isFollowed("ann");
  bench.restart();
  await bench.adopt(BOTH);
  await isRight();
});
