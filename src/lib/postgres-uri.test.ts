import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf, parsePostgresUri, type PostgresUri } from "./postgres-uri.ts";

function good(source: string): PostgresUri {
  const read = parsePostgresUri(source);
  assert.ok(typeof read !== "string", typeof read === "string" ? read : "");
  return read;
}

test("a URI names servers, user, database and how the server is verified", () => {
  assert.deepEqual(good("postgres://weir_node:p%40ss@db1,db2:5433/weir?sslmode=verify-full"), {
    servers: [
      { host: "db1", port: 5432 },
      { host: "db2", port: 5433 },
    ],
    user: "weir_node",
    password: "p@ss",
    database: "weir",
    tls: "verify-full",
    needsPrimary: true,
    connectTimeoutMs: 3000,
  });
  const six = good("postgresql://u@[2001:db8::1]:6000?connect_timeout=10&target_session_attrs=any");
  assert.deepEqual(
    [six.servers, six.password, six.database, six.needsPrimary, six.connectTimeoutMs],
    [[{ host: "2001:db8::1", port: 6000 }], "", "u", false, 10_000],
  );
  const socket = good("postgres://u@:6000/weir?host=/run/postgresql&sslmode=disable");
  assert.deepEqual(socket.servers, [{ host: "/run/postgresql", port: 6000 }]);
  assert.deepEqual(six.servers.map(nameOf), ["[2001:db8::1]:6000"]);
});

test("what is wrong is said without the password", () => {
  const cases: readonly (readonly [source: string, message: RegExp])[] = [
    ["mysql://u:hidden@db/weir", /expected postgres:\/\//],
    ["postgres://u:hid@den@db/weir", /%40/],
    ["postgres://u:hidden%zz@db/weir", /%25/],
    ["postgres://:hidden@db/weir", /no user/],
    ["postgres://u:hidden@/weir", /no host/],
    ["postgres://u:hidden@db:0/weir", /port must be from 1/],
    ["postgres://u:hidden@db/weir?sslmode=require", /does not verify/],
    ["postgres://u:hidden@db/weir?sslmode=disable", /in clear to db; verify-full would be right/],
    ["postgres://u:hidden@db/weir?connect_timeout=0", /seconds from 1 to 60/],
    ["postgres://u:hidden@db/weir?target_session_attrs=standby", /read-write, primary or any/],
    ["postgres://u:hidden@db/weir?options=x", /options: weir does not know/],
    [`postgres://u:hidden@${Array(17).fill("db").join(",")}/weir`, /more than 16/],
    [`postgres://u:hidden@db/${"x".repeat(5000)}`, /longer than 4096/],
  ];
  for (const [source, message] of cases) {
    const answer = parsePostgresUri(source);
    assert.ok(typeof answer === "string" && message.test(answer), `${source}: ${JSON.stringify(answer)}`);
    assert.ok(!answer.includes("hid"), answer);
  }
});
