/** Numbers, texts and rows that a node's login writes: they cost what it may write, and no other node. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { fetchHours, fetchMoved, fetchOnline } from "#fleet/by-node.ts";
import { fetchNodes } from "#fleet/nodes.ts";
import { LoginNode, makeLogins, openLogins } from "../support/fleet-logins.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { Bench, listener } from "../support/users-bench.ts";

const skip = noPostgres ?? false;
const MOST = Number.MAX_SAFE_INTEGER;
const BIGGEST = "9223372036854775807";
let database: FleetDatabase;
before(async () => {
  if (noPostgres !== null) return;
  database = await startFleetDatabase();
  makeLogins(database);
});
after(() => database?.[Symbol.asyncDispose]());

test("an entry that no node has counted is left out, and no sum fails", { skip }, async () => {
  await using at = await openLogins(database);
  const { honest, mallory, owner, alice, bob } = at;
  const received = await mallory.upload([
    { seq: 1, user: bob, upload: BIGGEST, download: BIGGEST },
    { seq: 2, user: bob, upload: BIGGEST, download: BIGGEST },
    { seq: 3, user: bob, upload: -5 },
    { seq: 4, user: bob, upload: 7, ageMs: BIGGEST },
    { seq: 5, user: bob, upload: 9, generation: 2 },
    { seq: 6, user: bob, upload: 1 },
  ]);
  assert.equal(received, 6, "what was left out is not sent again");
  await honest.upload([{ seq: 1, user: alice, upload: 100 }]);
  assert.deepEqual([await honest.totalOf(alice), await honest.totalOf(bob)], [100, 8]);
  assert.equal(await honest.one("SELECT weir.fold(1000)"), 3);
  const big = Array.from({ length: 20 }, (_, index) => ({
    seq: 7 + index,
    user: bob,
    upload: String(2 ** 50),
  }));
  await mallory.upload(big, { after: 6 });
  assert.equal(await honest.totalOf(bob), MOST);
  await honest.one("SELECT weir.fold(1000)");
  await mallory.upload(
    big.map((one) => ({ ...one, seq: one.seq + 20 })),
    { after: 26 },
  );
  await honest.one("SELECT weir.fold(1000)");
  assert.deepEqual([await honest.totalOf(alice), await honest.totalOf(bob)], [100, MOST]);
  const moved = await fetchMoved(honest.client, null, new Map());
  assert.equal(moved.get(bob)?.[0]?.uploadBytes, MOST);
  assert.equal((await fetchHours(honest.client, bob))[0]?.uploadBytes, MOST);
  for (const table of ["hour", "total"])
    await owner.query(`UPDATE weir.usage_${table} SET upload = ${BIGGEST}, download = ${BIGGEST}`); // of an earlier version
  await mallory.upload([{ seq: 47, user: bob, upload: 5 }], { after: 46 });
  assert.equal(await honest.one("SELECT weir.fold(1000)"), 1);
  assert.equal(await honest.totalOf(bob), MOST);
  const { rows } = await owner.query("SELECT upload FROM weir.quota_used($1, 1, 'day', 0)", [bob]);
  assert.deepEqual(rows, [{ upload: String(MOST) }]);
});

test("what an earlier version has let in makes no sum fail, and no node's next start", { skip }, async () => {
  const settings = await database.fresh();
  using bench = new Bench({ fleet: settings("fra-1") });
  await bench.adopt([listener("edge", "alice")]);
  const { id } = bench.first();
  database.in(
    settings("x"),
    `UPDATE weir.usage_total SET upload = ${BIGGEST}, download = ${BIGGEST}, fold = (SELECT folds FROM weir.fold_count)`,
  );
  database.in(
    settings("x"),
    `INSERT INTO weir.usage_hour SELECT '${id}', 1, date_trunc('hour', now()), n, ${BIGGEST}, ${BIGGEST}
     FROM unnest(ARRAY[gen_random_uuid(), gen_random_uuid()]) AS n`,
  );
  const total = async (): Promise<number> => {
    await bench.admin.fleet?.freshen();
    return bench.first().uploadBytes;
  };
  await until("the sum", async () => (await total()) === MOST);
  bench.meterOf(id).reserve("upload", 1000);
  await bench.users.checkpoint(); // the state file has it
  bench.restart();
  await bench.adopt([listener("edge", "alice")]);
  assert.equal(bench.first().uploadBytes, MOST);
});

test("a fold goes no way back, and comes to the end of any numbers", { skip }, async () => {
  await using at = await openLogins(database);
  const { honest, mallory, alice, bob, owner } = at;
  await honest.upload([1, 2, 3, 4].map((seq) => ({ seq, user: alice, upload: 10 })));
  assert.equal(await honest.one("SELECT weir.fold(2)"), 2);
  for (const most of [-3, 0, -2147483648]) await mallory.rows("SELECT weir.fold($1)", [most]);
  while (Number(await honest.one("SELECT weir.fold(1)")) > 0);
  assert.equal(await honest.totalOf(alice), 40);
  await mallory.upload([
    { seq: 1, user: bob, upload: 1 },
    { seq: 2 ** 40, user: bob, upload: 1 },
  ]);
  await mallory.upload([{ seq: 1, user: bob, upload: 1 }], { epoch: -7 });
  for (let folds = 0; folds < 3; folds++) await honest.one("SELECT weir.fold(100000)");
  const left = await owner.query("SELECT epoch FROM weir.ledger_came");
  assert.deepEqual(left.rows, [], "partitions would stay for ever");
  assert.equal(await honest.totalOf(bob), 2);
});

test("connections and addresses beyond all numbers cost no other user a limit", { skip }, async () => {
  await using at = await openLogins(database);
  const { honest, mallory, owner, alice, bob } = at;
  await owner.query(`UPDATE weir.app_user SET limits = '{"ip_limit": 3, "connection_limit": 5}'`);
  await mallory.beat();
  await honest.beat();
  await mallory.slots([
    { user: bob, ip: "192.0.2.1", count: 3 },
    { user: bob, ip: "x".repeat(100_000), count: 1 },
  ]);
  await owner.query("UPDATE weir.app_user SET limits = '{}' WHERE name = 'bob'");
  await mallory.slots([1, 2, 3].map((last) => ({ user: bob, ip: `192.0.2.${last}`, count: 2147483647 })));
  const many = Array.from({ length: 3000 }, (_, index) => ({
    user: bob,
    ip: `2001:db8::${index.toString(16)}`,
    count: 1,
  }));
  await mallory.slots(many.slice(0, 1500));
  await mallory.slots(many.slice(1500));
  await owner.query(`UPDATE weir.app_user SET limits = '{"connection_limit": 5}' WHERE name = 'bob'`);
  const answers = await honest.slots([
    { user: alice, ip: "198.51.100.1", count: 1 },
    { user: bob, ip: "198.51.100.2", count: 1 },
  ]);
  const of = (user: string) => answers.find(({ user_id: id }) => id === user);
  assert.equal(of(alice)?.most, 5);
  assert.deepEqual([of(bob)?.most, of(bob)?.connections], [0, 2147483647]);
  assert.ok((of(bob)?.ips.length ?? 0) <= 1000, "of one node");
  assert.equal((await fetchOnline(honest.client, honest.id)).get(bob)?.get("mallory"), 2147483647);
});

test("limits that no weir writes are none, and leases of others go on", { skip }, async () => {
  await using at = await openLogins(database);
  const { honest, owner, alice, bob } = at;
  await owner.query(
    `UPDATE weir.app_user SET limits = '{"quota": {"total_bytes": 1000000000, "reset": "never", "window_seconds": 0}}'
     WHERE name = 'alice'`,
  );
  const strange = [
    { quota: "much" },
    { quota: { total_bytes: 1e300, reset: "never" } },
    { quota: { total_bytes: "x", reset: "day" } },
    { quota: { total_bytes: 5, reset: "fortnight" } },
    { quota: { total_bytes: 5, reset: "window", window_seconds: 6e11 } },
    { ip_limit: 1e30, connection_limit: "x" },
    { ip_limit: [], connection_limit: 1e18 },
  ];
  for (const limits of strange) {
    await owner.query("UPDATE weir.app_user SET limits = $1 WHERE name = 'bob'", [limits]);
    const granted = await honest.leases([alice, bob]);
    assert.ok(Number(granted.find(({ user_id: id }) => id === alice)?.granted) > 0, JSON.stringify(limits));
    await honest.slots([{ user: bob, ip: "198.51.100.2", count: 1 }]);
  }
});

test("what a node says of itself is of a size that all others can read", { skip }, async () => {
  await using at = await openLogins(database);
  const { honest, mallory, owner } = at;
  const huge = "x".repeat(1_000_000);
  for (const said of [{ address: huge }, { labels: { a: huge } }])
    assert.match(String(await mallory.enroll(1, said)), /too long/);
  const loud = new LoginNode(mallory.client, huge);
  assert.match(String(await loud.enroll()), /too long/);
  await mallory.beat({ side: 1, [huge]: 1 });
  await owner.query("SELECT weir.allow('mallory', '{*}', false)"); // sees listeners of any name
  const links = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, () => [randomUUID(), { "": huge }]));
  await mallory.beat({}, links(5));
  const second = new LoginNode(await at.open("mallory"), "second");
  assert.equal(await second.enroll(), null);
  await second.beat({}, links(12));
  await second.beat({}, { side: { "": "test://x" } });
  const nodes = await fetchNodes(honest.client, honest.id);
  assert.ok(JSON.stringify(nodes).length < 16_777_216, "of all its nodes");
  assert.deepEqual(nodes.find(({ name }) => name === "second")?.links, { side: { "": "test://x" } });
  await owner.query(
    `INSERT INTO weir.node (id, name, login, address, labels, version, epoch, instance, seen_at, applied, connections, draining)
     SELECT gen_random_uuid(), 'n' || i, 'mallory', '', '{}', '0', 1, gen_random_uuid(), now(),
       jsonb_build_object('side', i), 0, false
     FROM generate_series(1, 998) AS i`,
  );
  await owner.query(
    `INSERT INTO weir.change (listener, revision, kind) SELECT 'side', 1000 + i, 'x' FROM generate_series(1, 20000) AS i`,
  );
  await owner.query("ANALYZE weir.change"); // as the server does by itself
  const crowd = await fetchNodes(honest.client, honest.id);
  assert.equal(
    crowd.find(({ name }) => name === "n998")?.lagChanges,
    1000,
    "what each lacks is counted in time",
  );
  assert.match(String(await new LoginNode(mallory.client, "one more").enroll()), /1000 nodes already/);
  assert.equal(await second.enroll(), null, "who is there already stays");
});
