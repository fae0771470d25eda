import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { decodeState, encodeListener, encodeUser, LISTENERS, PARTS, USERS } from "#users/records.ts";
import type { UserBook } from "#users/user-book.ts";
import { type FleetDatabase, startFleetDatabase } from "../support/fleet.ts";
import { aBook } from "../support/fleet-users.ts";
import { noPostgres } from "../support/postgres.ts";
import { exportState, importState } from "#fleet/move.ts";
import { TokenSeal } from "#fleet/seal.ts";

const skip = noPostgres ?? false;
const seal = new TokenSeal("s".repeat(32));
let database: FleetDatabase;
const folder = mkdtempSync(join(tmpdir(), "weir-fleet-move-"));

before(async () => {
  if (noPostgres === null) database = await startFleetDatabase();
});
after(async () => {
  await database?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const open = (name: string) =>
  Store.open({ path: join(folder, name), parts: PARTS, nowMs: Date.now, log: SILENT });
const stateIn = (store: Store) => decodeState(store.entries(LISTENERS), store.entries(USERS));

function fill(name: string, ...books: readonly UserBook[]): void {
  using store = open(name);
  const traffic = { uploadBytes: 3, downloadBytes: 5e12, usage: null };
  const changes = books.flatMap((book) => [
    { part: LISTENERS, key: book.listener, value: encodeListener(book) },
    ...[...book.users.values()].map((user) => ({
      part: USERS,
      key: user.id,
      value: encodeUser(book, user, traffic),
    })),
  ]);
  store.commit(changes, { backup: true });
}

test(
  "users go into the database and back, with tokens and counters; twice is as once",
  { skip },
  async () => {
    const edge = aBook("edge", "alice", "bob");
    const limits = {
      ...([...edge.users.values()][0]?.limits ?? assert.fail()),
      connections: 3,
      expiresAtMs: 5e12,
    };
    const [alice] = edge.users.values();
    assert.ok(alice !== undefined);
    const limited = { ...edge, users: new Map(edge.users).set(alice.id, { ...alice, limits }) };
    fill("one.db", limited, aBook("side"));
    using one = open("one.db");
    const moving = { seal, node: "test", isDry: false };
    await database.as(null, async (client) => {
      const tried = await importState(client, one, { ...moving, isDry: true });
      assert.deepEqual(
        [...tried.done].sort(([a], [b]) => a.localeCompare(b)),
        [
          ["edge", 2],
          ["side", 0],
        ],
      );
      assert.equal(database.server.sql("SELECT count(*) FROM weir.listener"), "0");
      assert.equal((await importState(client, one, moving)).done.size, 2);
      assert.deepEqual((await importState(client, one, moving)).present.toSorted(), ["edge", "side"]);
      assert.equal((await exportState(client, null, { ...moving, isDry: true })).done.get("edge"), 2);
      using back = open("two.db");
      assert.equal((await exportState(client, back, moving)).done.get("edge"), 2);
      assert.deepEqual(stateIn(back), stateIn(one));
      assert.deepEqual((await exportState(client, back, moving)).present, ["edge", "side"]);
      assert.ok(existsSync(join(folder, "two.db")));
    });
    const dump = database.server.sql("SELECT * FROM weir.app_user");
    for (const { token } of edge.users.values())
      assert.ok(!dump.includes(token), "a token is in the database");
  },
);

test(
  "another listener of the name, another secret and another file's users are not mixed",
  { skip },
  async () => {
    fill("other.db", aBook("edge", "mallory"));
    using other = open("other.db");
    await database.as(null, async (client) => {
      const moving = { seal, node: "test", isDry: false };
      await assert.rejects(importState(client, other, moving), /another listener edge already/);
      await assert.rejects(exportState(client, other, moving), /holds other users/);
      const wrong = { ...moving, seal: new TokenSeal("t".repeat(32)) };
      await assert.rejects(importState(client, other, wrong), /svc\.secret differs/);
      await assert.rejects(exportState(client, null, wrong), /sealed with another svc\.secret/);
    });
    assert.equal(database.server.sql("SELECT count(*) FROM weir.app_user"), "2");
  },
);
