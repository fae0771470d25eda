/** Every route of the router's own table with every credential there is: each opens its own group and nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../support/api-app.ts";
import { everyRoute } from "../support/api-document.ts";
import { MemoryControl } from "../support/memory-control.ts";
import { ADMIN_SECRET, MemoryUsers } from "../support/memory-users.ts";
import { EITHER_SECRET, OWN_SECRET, routeTable, type Row, STREAMS } from "../support/route-table.ts";

const SECRET = "correct horse";
/** The token of a subscription in the memory core. */
const TOKEN = "1";
/** Everything that answers without a secret; a route that is missing here must refuse. */
const OPEN = new Set([
  "GET /ui",
  "GET /ui/*",
  "GET /dns-query",
  "POST /dns-query",
  "GET /sub/svc/:token",
  "HEAD /sub/svc/:token",
  "POST /api/svc/session/code",
]);

interface Credential {
  readonly name: string;
  readonly opens: "controller" | "admin" | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
}

const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });
const CREDENTIALS: readonly Credential[] = [
  { name: "none", opens: null },
  { name: "wrong", opens: null, ...bearer("wrong") },
  { name: "an empty header", opens: null, headers: { authorization: "" } },
  { name: "no secret", opens: null, ...bearer("") },
  { name: "a blank before it", opens: null, ...bearer(` ${SECRET}`) },
  { name: "a blank behind it", opens: null, ...bearer(`${SECRET} `) },
  { name: "another scheme", opens: null, headers: { authorization: `Basic ${SECRET}` } },
  { name: "no scheme", opens: null, headers: { authorization: SECRET } },
  { name: "the Controller's", opens: "controller", ...bearer(SECRET) },
  { name: "the admin's", opens: "admin", ...bearer(ADMIN_SECRET) },
  { name: "a subscription token", opens: null, ...bearer(TOKEN) },
  { name: "the Controller's in the query", opens: null, query: `?token=${encodeURIComponent(SECRET)}` },
  { name: "the admin's in the query", opens: null, query: `?token=${encodeURIComponent(ADMIN_SECRET)}` },
];

function options(users: MemoryUsers | { readonly admin: null; readonly waiting: null }) {
  return { secret: SECRET, ...everyRoute(new MemoryControl(), users) };
}

/** What a request without a body may come to once the credential is right. */
const isThrough = (status: number): boolean => status !== 401 && status !== 403;

test("every route × every credential", async (context) => {
  const { app } = await apiApp(options(new MemoryUsers()));
  const declared = new Set(
    Object.entries((await app.inject({ url: "/openapi.json", ...bearer(SECRET) })).json<Document>().paths)
      .flatMap(([path, operations]) => Object.keys(operations).map((method) => [method, path] as const))
      .map(([method, path]) => `${method.toUpperCase()} ${path}`),
  );
  let asked = 0;
  for (const row of routeTable(app))
    for (const credential of CREDENTIALS) {
      const { method, pattern, url } = row;
      const isStream = STREAMS.has(pattern) && method === "GET";
      if (isStream && credential.opens === "controller") continue; // it would never end
      const { headers = {}, query = "" } = credential;
      const answer = await app.inject({ method, url: url + query, headers });
      asked++;
      const what = `${method} ${url} with ${credential.name}: ${answer.statusCode}`;
      const isDeclared = declared.has(`${method} ${documented(row)}`);
      const group = groupOf(row, isDeclared);
      const isEither = group === "either" && credential.opens !== null;
      const shouldPass = group === "open" || group === credential.opens || isEither;
      assert.equal(isThrough(answer.statusCode), shouldPass, what);
      assert.equal(answer.statusCode === 405, shouldPass && !isDeclared, what);
      if (shouldPass || method === "HEAD") continue;
      assert.deepEqual(answer.json(), { message: "Unauthorized", error: "Unauthorized" }, what);
    }
  context.diagnostic(`${asked} requests`);
  assert.ok(asked > 1000);
});

interface Document {
  readonly paths: Readonly<Record<string, object>>;
}

/** The path as the document writes it. */
function documented({ pattern }: Row): string {
  const plain = pattern.length > 1 && pattern.endsWith("/") ? pattern.slice(0, -1) : pattern;
  return plain.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{path}");
}

/** The answer to a wrong method tells nothing and needs no secret; behind a guard no client gets that far. */
function groupOf({ method, pattern }: Row, isDeclared: boolean): "open" | "admin" | "controller" | "either" {
  if (EITHER_SECRET.test(pattern)) return "either";
  if (OWN_SECRET.test(pattern)) return "admin";
  return !isDeclared || OPEN.has(`${method} ${pattern}`) ? "open" : "controller";
}

test("svc-admin-api §3 check 1: where nothing is managed every admin path is 404 in plain text, whatever the method and credential", async () => {
  const { app } = await apiApp(options({ admin: null, waiting: null }));
  const rows = routeTable(app).filter(({ pattern }) => pattern.startsWith("/api/admin/"));
  assert.ok(rows.length > 50);
  for (const { method, url } of rows)
    for (const { headers = {}, name } of CREDENTIALS)
      for (const origin of [{}, { origin: "https://evil.example" }]) {
        const answer = await app.inject({ method, url, headers: { ...headers, ...origin } });
        assert.equal(answer.statusCode, 404, `${method} ${url} with ${name}`);
        assert.match(String(answer.headers["content-type"]), /^text\/plain/);
        assert.equal(answer.headers["cache-control"], "no-store");
        assert.equal(answer.headers["www-authenticate"], undefined);
      }
});

test("svc-admin-api §2: with users managed a wrong method is 405 to those who may ask, never cached", async () => {
  const { app } = await apiApp(options(new MemoryUsers()));
  const ask = (headers: Record<string, string>) =>
    app.inject({ method: "PATCH", url: "/api/admin/users", headers });
  const right = await ask({ authorization: `Bearer ${ADMIN_SECRET}` });
  assert.deepEqual([right.statusCode, right.headers.allow], [405, "GET, POST, OPTIONS"]);
  assert.equal(right.headers["cache-control"], "no-store");
  assert.equal((await ask({})).statusCode, 401);
  assert.equal((await ask({ origin: "https://evil.example" })).statusCode, 403);
});

test("the scheme is taken in any case; without a secret any header passes", async () => {
  const { app } = await apiApp(options(new MemoryUsers()));
  const version = async (authorization: string) =>
    (await app.inject({ url: "/version", headers: { authorization } })).statusCode;
  assert.equal(await version(`bearer ${SECRET}`), 200);
  assert.equal(await version(`BEARER ${SECRET}`), 200);
  const open = (await apiApp()).app;
  for (const authorization of ["Bearer", "Bearer ", "Bearer x", "nonsense"]) {
    assert.equal((await open.inject({ url: "/version", headers: { authorization } })).statusCode, 200);
  }
});

test("a secret outside ASCII is compared by its bytes", async () => {
  const { app } = await apiApp({ secret: "пароль" });
  const authorization = `Bearer ${Buffer.from("пароль").toString("latin1")}`;
  assert.equal((await app.inject({ url: "/version", headers: { authorization } })).statusCode, 200);
});
