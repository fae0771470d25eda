/** `weir fleet …` as an operator calls it, with a real database. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { encodeListener, encodeUser, LISTENERS, PARTS, USERS } from "#users/records.ts";
import { aBook } from "../support/fleet-users.ts";
import { noPostgres, startPostgres, type TestPostgres } from "../support/postgres.ts";

const skip = noPostgres ?? false;
const main = join(import.meta.dirname, "../../src/main.ts");
const home = mkdtempSync(join(tmpdir(), "weir-fleet-cli-"));
const ADMIN = "admin-password-of-the-test";
let server: TestPostgres;

before(async () => {
  if (noPostgres !== null) return;
  server = await startPostgres();
  writeFileSync(
    join(home, "config.yaml"),
    `listeners: [{name: edge, type: vless, listen: 127.0.0.1, port: 0, users: []}]
svc:
  secret: ${"s".repeat(32)}
  managed-listeners: [edge]
  fleet: {ca: ca.pem, node: fra-1}
`,
  );
  writeFileSync(join(home, "ca.pem"), server.authority.cert);
  using store = Store.open({ path: join(home, "svc-state.db"), parts: PARTS, nowMs: Date.now, log: SILENT });
  const book = aBook("edge", "alice", "bob");
  const traffic = { uploadBytes: 1, downloadBytes: 2, usage: null };
  const users = [...book.users.values()].map((user) => ({
    part: USERS,
    key: user.id,
    value: encodeUser(book, user, traffic),
  }));
  store.commit([{ part: LISTENERS, key: "edge", value: encodeListener(book) }, ...users], { backup: true });
});
after(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

function fleet(dsn: string | null, verb: string, ...words: readonly string[]) {
  const { WEIR_FLEET_DSN: _, ...rest } = process.env;
  const env = dsn === null ? rest : { ...rest, WEIR_FLEET_DSN: dsn };
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", main, "fleet", verb, "-d", home, ...words],
    { encoding: "utf8", env, timeout: 60_000 },
  );
  assert.ok(!`${stdout}${stderr}`.includes(ADMIN), "the password is shown");
  return { status, text: stdout + stderr };
}

test("from an empty database to a node that can take part", { skip }, () => {
  const admin = server.dsn();
  assert.match(fleet(null, "check").text, /no database: dsn, dsn-file or .* WEIR_FLEET_DSN/);
  const early = fleet(admin, "check");
  assert.deepEqual(
    [early.status, /missing: the schema|GRANT weir_node/.test(early.text)],
    [1, true],
    early.text,
  );
  assert.match(fleet(admin, "migrate", "-dry-run").text, /version 0 to \d+\nnothing is kept/);
  assert.match(fleet(admin, "migrate").text, /version 0 to \d+\n$/);
  assert.match(fleet(admin, "migrate").text, /already/);
  server.sql("CREATE ROLE fra1 LOGIN PASSWORD 'fra' IN ROLE weir_node");
  const node = server.dsn("fra1", "fra");
  assert.match(fleet(node, "check").text, /missing: weir fleet allow fra1 edge/);
  assert.match(fleet(node, "allow", "fra1", "edge").text, /fleet allow: the role may not do this/);
  assert.match(fleet(admin, "allow", "-writes", "fra1", "edge").text, /fra1 sees and changes edge/);
  assert.match(
    fleet(admin, "import", "-dry-run", join(home, "svc-state.db")).text,
    /edge: 2 users\nnothing is kept/,
  );
  assert.match(fleet(admin, "import", join(home, "svc-state.db")).text, /edge: 2 users\n$/);
  assert.match(fleet(admin, "import", join(home, "svc-state.db")).text, /edge: is there already/);
  const good = fleet(node, "check");
  assert.deepEqual(
    [good.status, /edge: 2 users, may change them[^]*can take part/.test(good.text)],
    [0, true],
    good.text,
  );
  assert.match(fleet(node, "export", join(home, "back.db")).text, /edge: 2 users/);
});

test("what cannot be reached or is said wrongly is one line", { skip }, () => {
  const lost = fleet(server.dsn().replace(String(server.port), "1"), "check");
  assert.equal(lost.status, 1);
  assert.match(lost.text, /fleet check: localhost:1: nothing listens there\n$/);
  assert.match(fleet(server.dsn("postgres", "wrong"), "check").text, /user or password is wrong/);
  assert.match(
    fleet("postgres://u@db/weir?sslmode=prefer", "check").text,
    /WEIR_FLEET_DSN: sslmode: expected one of/,
  );
  assert.match(fleet(server.dsn(), "import", join(home, "none.db")).text, /there is no .*none\.db/);
  assert.match(fleet(server.dsn(), "fly").text, /usage: weir fleet check/);
});
