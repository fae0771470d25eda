/** Real nodes on a real database: users follow, changes are refused as on one node, and a copy is noticed. */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "#fleet/connection.ts";
import { databaseOptions } from "#fleet/source.ts";
import { LoginNode } from "../support/fleet-logins.ts";
import { agree, startNode } from "../support/fleet-nodes.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { CONTROLLER_SECRET, type ManagedCore, stateFolder } from "../support/managed-core.ts";
import { noPostgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const skip = noPostgres ?? false;
let database: FleetDatabase;
before(async () => {
  if (noPostgres === null) database = await startFleetDatabase();
});
after(() => database?.[Symbol.asyncDispose]());

test(
  "what one node changes is in force on the other, and only one of two writers wins",
  { skip },
  async () => {
    const settings = await database.fresh();
    await using a = await startNode(settings("fra-1"));
    await using b = await startNode(settings("ams-1"));
    const alice = await a.core.create("edge", "alice");
    await until("alice on b", async () => (await b.core.user(alice.id)).uuid === alice.uuid);
    const { revision } = await b.core.user(alice.id);
    const ask = (core: ManagedCore, name: string) =>
      core.ask("PUT", `/api/admin/users/${alice.id}`, { body: { revision, name } });
    const both = await Promise.all([ask(a.core, "from a"), ask(b.core, "from b")]);
    assert.deepEqual(
      both.map(({ status }) => status).sort((a, b) => a - b),
      [200, 409],
    );
    const winner = both.find(({ status }) => status === 200)?.json.revision ?? 0;
    const loser = both.find(({ status }) => status === 409)?.json.message ?? "";
    assert.equal(loser, `listener edge: expected revision ${revision}, the current revision is ${winner}`);
    const refused = both[0].status === 409 ? a : b;
    assert.equal(await refused.core.revision("edge"), winner, "who was refused reads what is in force");
    await agree("edge", a, b);
    assert.equal((await a.core.user(alice.id)).name, (await b.core.user(alice.id)).name);
    // A user made there a moment ago is known here, and so is one that is gone.
    const bob = await b.core.create("edge", "bob");
    const renamed = await a.core.ask("PUT", `/api/admin/users/${bob.id}`, {
      body: { revision: bob.revision, name: "robert" },
    });
    assert.equal(renamed.status, 200, renamed.text);
    const gone = await b.core.ask("DELETE", `/api/admin/users/${bob.id}?revision=${renamed.json.revision}`);
    assert.equal(gone.status, 204, gone.text);
    const late = await a.core.ask("DELETE", `/api/admin/users/${bob.id}?revision=${renamed.json.revision}`);
    assert.equal(late.status, 404, late.text);
    const { subscription_url: url } = await a.core.user(alice.id);
    const links = async () => {
      const answer = await fetch(a.core.url + new URL(url).pathname);
      return Buffer.from(await answer.text(), "base64")
        .toString()
        .split("\n")
        .map((link) =>
          /^vless:\/\/([^@]+)@([^:]+):\d+\?.*#(.*)$/.exec(link)?.slice(1).map(decodeURIComponent),
        );
    };
    const { name, uuid } = await a.core.user(alice.id);
    const nodeLink = (node: string) => [uuid, `${node}.example.com`, `${name} · ${node}`];
    const expected = [nodeLink("ams-1"), nodeLink("fra-1")];
    await until("a link a node", async () => JSON.stringify(await links()) === JSON.stringify(expected));
    const split = await a.core.ask("GET", "/api/admin/overview?by=node");
    assert.deepEqual(
      JSON.parse(split.text).nodes.map(({ node }: { node: string }) => node),
      ["ams-1", "fra-1"],
    );
    const { nodes } = await a.fleet();
    assert.deepEqual(
      nodes.map(({ name, state, self }) => [name, state, self]),
      [
        ["ams-1", "live", undefined],
        ["fra-1", "live", true],
      ],
    );
    await until("applied on all", async () => {
      const { text } = await a.core.ask("GET", "/api/admin/inbounds");
      const [edge] = JSON.parse(text).inbounds;
      return edge.applied_revision === edge.revision && Object.keys(edge.applied).length === 2;
    });
  },
);

test("without the database a node serves from its snapshot, and changes wait", { skip }, async () => {
  const settings = (await database.fresh())("fra-1");
  using folder = stateFolder();
  let id = "";
  {
    await using node = await startNode(settings, { store: folder.store });
    ({ id } = await node.core.create("edge", "alice"));
  }
  const silent = settings.dsn?.replace(/@localhost:\d+/, "@192.0.2.1:5432") ?? "";
  await using node = await startNode({ ...settings, dsn: silent }, { store: folder.store, isAlone: true });
  const line = /the database is not there yet, its 1 users are served as they were last known/;
  await node.core.core.shows(line);
  assert.equal((await node.core.user(id)).name, "alice");
  const { database: state, nodes } = await node.fleet();
  assert.deepEqual([state.state, nodes], ["away", []]);
  const { revision } = await node.core.user(id);
  const refused = await node.core.ask("PUT", `/api/admin/users/${id}`, { body: { revision, name: "x" } });
  assert.equal(refused.status, 503, refused.text);
  assert.match(refused.json.message, /the fleet's database is away: .*nothing was changed/);
  assert.equal(refused.headers.get("retry-after"), "2");
  assert.equal((await node.core.user(id)).name, "alice");
});

test("a node whose first start met no database makes its listener when it is there", { skip }, async () => {
  const settings = (await database.fresh())("fra-1");
  await database.server.kill();
  await using node = await startNode(settings, { isAlone: true });
  await node.core.core.shows(/its users are not known here: no user is let in until it is/);
  await database.server.start();
  await until("the listener", async () => (await node.applied("edge")) > 0, { withinMs: 60_000 });
  await node.core.create("edge", "alice");
});

test("a copied state file is refused with a line that says what to do", { skip }, async () => {
  const settings = await database.fresh();
  using folder = stateFolder();
  using other = stateFolder();
  {
    await using node = await startNode(settings("fra-1"), { store: folder.store });
    await node.core.create("edge", "alice");
    await node.core.core.stop(); // in order, so that all is in the two files
  }
  for (const end of ["", ".bak"]) cpSync(folder.store + end, other.store + end);
  await using node = await startNode(settings("fra-1"), { store: folder.store });
  await using copy = await startNode(settings("fra-1"), {
    store: join(other.path, "users.db"),
    isAlone: true,
  });
  await copy.core.core.shows(
    /another process is node fra-1 already, with a copy of this state file; stop one of the two, and give this one another svc\.store/,
  );
  assert.equal((await copy.core.ask("GET", "/api/admin/overview")).status, 404);
  assert.equal((await node.fleet()).nodes[0]?.state, "live");
  await node.core.create("edge", "bob");
});

test("a node is drained, put back, and forgotten when it is lost", { skip }, async () => {
  const settings = await database.fresh();
  await using a = await startNode(settings("fra-1"));
  await using b = await startNode(settings("ams-1"));
  const post = (verb: string) => a.core.ask("POST", `/api/svc/fleet/nodes/ams-1/${verb}`);
  const stateOfB = async () => (await b.fleet()).nodes.find(({ name }) => name === "ams-1")?.state;
  assert.equal((await post("drain")).status, 204);
  await until("draining", async () => (await stateOfB()) === "draining");
  const { text } = await a.core.ask("GET", "/metrics", { secret: CONTROLLER_SECRET });
  assert.match(text, /^weir_fleet_database_up 1$/m);
  assert.match(text, /^weir_fleet_node_state\{node="ams-1",state="draining"\} 1$/m);
  assert.equal((await post("resume")).status, 204);
  await until("live again", async () => (await stateOfB()) === "live");
  const forget = () => a.core.ask("DELETE", "/api/svc/fleet/nodes/ams-1");
  assert.equal((await forget()).status, 409);
  assert.equal((await a.core.ask("POST", "/api/svc/fleet/nodes/nowhere/drain")).status, 404);
});

test("a node whose login may not write says so, and does not make a listener either", { skip }, async () => {
  const settings = await database.fresh();
  {
    await using owner = await startNode(settings("fra-1"));
    await owner.core.create("edge", "alice");
  }
  const login = "reader_of_nodes";
  database.server.sql(`CREATE ROLE ${login} LOGIN PASSWORD '${login}' IN ROLE weir_node`);
  database.in(settings("x"), `SELECT weir.allow('${login}', '{edge}', false)`);
  await using node = await startNode(settings("ams-1", login));
  await node.core.core.shows(
    /listener side: the fleet does not have it for this login: weir fleet allow LOGIN side/,
  );
  const revision = await node.core.revision("edge");
  const refused = await node.core.ask("POST", "/api/admin/users", {
    body: { inbound: "edge", name: "bob", revision },
  });
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.json.message, /may not change users of listener edge; weir fleet allow -writes/);
});

test("a link that makes no sense costs the node that says it, and no subscription", { skip }, async () => {
  const settings = await database.fresh();
  await using a = await startNode(settings("fra-1"));
  const alice = await a.core.create("edge", "alice");
  const path = new URL((await a.core.user(alice.id)).subscription_url).pathname;
  const answered = async (form: string): Promise<string> => {
    const answer = await fetch(`${a.core.url}${path}?format=${form}`);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return form === "base64" ? Buffer.from(text, "base64").toString() : text;
  };
  const client = await connect(databaseOptions(settings("evil"), {}));
  const evil = new LoginNode(client, "evil");
  await evil.enroll();
  const good = "@evil.example.com:443?security=tls&type=tcp";
  const said = [
    "@evil",
    "@evil.example.com:443?type=nonsense&security=none",
    `${good}\nvless://${alice.uuid}@mallory.example.com:443`,
    `@${"x".repeat(100_000)}:443`,
    good,
  ];
  for (const place of said) {
    await evil.beat({}, { edge: { "": `vless://user${place}#evil` } });
    assert.equal((await a.fleet()).nodes.length, 2, "it is read");
    for (const form of ["base64", "clash", "sing-box"]) {
      const text = await answered(form);
      assert.match(text, /fra-1\.example\.com/);
      assert.ok(!text.includes("mallory"), text);
    }
  }
  assert.match(await answered("base64"), /evil\.example\.com:443/);
  await client.end();
});
