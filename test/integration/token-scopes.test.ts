/** Every route of the router's own table with a token of every scope: each opens what its scope says, and nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allows, SCOPES, type Scope } from "#core/access.ts";
import type { Log, LogText } from "#core/log.ts";
import { apiApp } from "../support/api-app.ts";
import { everyRoute, type ApiDocument } from "../support/api-document.ts";
import { MemoryControl } from "../support/memory-control.ts";
import { MemoryJournal } from "../support/memory-journal.ts";
import { ADMIN_SECRET, MemoryUsers } from "../support/memory-users.ts";
import { routeTable, type Row } from "../support/route-table.ts";

const SECRET = "correct horse";
const STREAMS = new Set(["/traffic", "/memory", "/logs", "/api/svc/events"]);
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

/** All that would be logged. */
function recordingLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (text: LogText) => void lines.push(typeof text === "string" ? text : text());
  return { lines, log: { debug: write, info: write, warning: write, error: write } };
}

async function world() {
  const journal = new MemoryJournal();
  const users = new MemoryUsers();
  const { log, lines } = recordingLog();
  const { app } = await apiApp(
    { secret: SECRET, ...everyRoute(new MemoryControl(), users, journal) },
    { log },
  );
  const tokenFor = async (scopes: readonly Scope[], listener: string | null = null) => {
    const name = `${scopes.join("+")} ${listener ?? ""} ${Math.random()}`;
    return (await journal.createToken({ name, scopes, listener, expiresAtMs: null })).token;
  };
  return { app, journal, users, lines, tokenFor };
}

/** Each scope alone, and two that include nothing of each other. */
const SETS: readonly (readonly Scope[])[] = [...SCOPES.map((scope) => [scope]), ["operate", "users"]];

test("every route × every scope, by what the route itself names", async (context) => {
  const { app, lines, tokenFor } = await world();
  const { paths } = (await app.inject({ url: "/openapi.json", headers: bearer(SECRET) })).json<ApiDocument>();
  const scopeOf = ({ method, pattern }: Row) => {
    const path = pattern
      .replaceAll(/:(\w+)/g, "{$1}")
      .replace("*", "{path}")
      .replace(/(.)\/$/, "$1");
    const operation = paths[path]?.[method.toLowerCase()];
    if (operation === undefined) return null; // a method that is not declared
    if (operation.security.length === 0) return "open";
    return operation.security.flatMap((scheme) => scheme["token"] ?? [])[0] ?? "owner";
  };
  let asked = 0;
  const seen = new Map<string, number>();
  for (const scopes of SETS) {
    const token = await tokenFor(scopes);
    for (const row of routeTable(app)) {
      const scope = scopeOf(row);
      if (scope === null) continue;
      const { method, pattern, url } = row;
      const opens = scope === "open" || SCOPES.some((one) => one === scope && allows(scopes, one));
      if (opens && method === "GET" && STREAMS.has(pattern)) continue; // it would never end
      const answer = await app.inject({ method, url, headers: bearer(token) });
      asked++;
      seen.set(scope, (seen.get(scope) ?? 0) + 1);
      const what = `${method} ${pattern} (${scope}) with ${scopes.join("+")}: ${answer.statusCode}`;
      if (opens) assert.ok(answer.statusCode !== 401 && answer.statusCode !== 403, what);
      else assert.equal(answer.statusCode, 403, what);
      assert.doesNotMatch(answer.body + JSON.stringify(answer.headers), new RegExp(token), what);
    }
    assert.doesNotMatch(lines.join("\n"), new RegExp(token));
  }
  for (const scope of ["open", "owner", ...SCOPES])
    assert.ok((seen.get(scope) ?? 0) > 0, `no route asks for ${scope}`);
  context.diagnostic(`${asked} requests`);
});

test("a token that was revoked, has expired or is not quite one is 401 everywhere, and one in an address too", async () => {
  const { app, journal } = await world();
  const status = async (token: string, url = "/version") =>
    (await app.inject({ url, headers: bearer(token) })).statusCode;
  const draft = { name: "short", scopes: ["read", "users"], listener: null } as const;
  const short = await journal.createToken({ ...draft, expiresAtMs: journal.nowMs + 1000 });
  assert.deepEqual([await status(short.token), await status(short.token, "/api/admin/users")], [200, 200]);
  assert.equal((await app.inject({ url: `/version?token=${short.token}` })).statusCode, 401);
  const last = short.token.at(-1) === "A" ? "B" : "A";
  for (const wrong of [
    short.token.slice(0, -1),
    short.token.slice(0, -1) + last,
    `${short.token}A`,
    short.token.toUpperCase(),
  ])
    assert.equal(await status(wrong), 401, wrong.length.toString());
  journal.nowMs += 1000;
  assert.deepEqual([await status(short.token), await status(short.token, "/api/admin/users")], [401, 401]);
  const other = await journal.createToken({ ...draft, name: "other", expiresAtMs: null });
  assert.equal(await status(other.token), 200);
  await journal.revokeToken(other.view.id);
  assert.deepEqual([await status(other.token), await status(other.token, "/api/admin/users")], [401, 401]);
});

test("a token for one listener sees and changes the users of no other", async () => {
  const { app, tokenFor } = await world();
  const ask = (token: string, method: "GET" | "POST" | "PUT" | "DELETE", url: string, payload?: object) =>
    app.inject({ method, url, headers: bearer(token), ...(payload === undefined ? {} : { payload }) });
  const [own, other] = [await tokenFor(["users"], "edge"), await tokenFor(["users"], "side")];
  assert.equal((await ask(own, "GET", "/api/admin/users")).json<{ users: unknown[] }>().users.length, 1);
  assert.deepEqual((await ask(other, "GET", "/api/admin/users")).json(), { users: [], inbounds: [] });
  assert.deepEqual((await ask(other, "GET", "/api/admin/inbounds")).json(), { inbounds: [], listeners: [] });
  const draft = { inbound: "edge", name: "bob", revision: 1 };
  const tries = [
    ["GET", "/api/admin/users/1", undefined],
    ["GET", "/api/admin/users/1/usage", undefined],
    ["GET", "/api/admin/users/1/history", undefined],
    ["POST", "/api/admin/users", draft],
    ["PUT", "/api/admin/users/1", { name: "eve", revision: 1 }],
    ["DELETE", "/api/admin/users/1?revision=1", undefined],
    ["POST", "/api/admin/users/1/reset-traffic", { revision: 1 }],
    ["POST", "/api/admin/users/1/rotate-subscription", { revision: 1 }],
  ] as const;
  for (const [method, url, payload] of tries)
    assert.equal((await ask(other, method, url, payload)).statusCode, 404, `${method} ${url}`);
  assert.equal((await ask(own, "POST", "/api/admin/users", draft)).statusCode, 201);
});

test("every change leaves an entry that says who, what and under which request, and no secret", async () => {
  const { app, journal, tokenFor } = await world();
  const owner = bearer(ADMIN_SECRET);
  const made = await app.inject({
    method: "POST",
    url: "/api/svc/tokens",
    headers: owner,
    payload: { name: "panel", scopes: ["users"] },
  });
  assert.equal(made.statusCode, 201, made.body);
  const { id, token } = made.json<{ id: string; token: string }>();
  const created = await app.inject({
    method: "POST",
    url: "/api/admin/users",
    headers: { ...bearer(token), "x-forwarded-for": "203.0.113.9" },
    payload: { inbound: "edge", name: "bob", revision: 1 },
  });
  const { id: user, uuid, revision } = created.json<{ id: string; uuid: string; revision: number }>();
  await app.inject({
    method: "PUT",
    url: `/api/admin/users/${user}`,
    headers: bearer(token),
    payload: { enabled: false, revision },
  });
  await app.inject({
    method: "DELETE",
    url: "/connections/abc",
    headers: bearer(await tokenFor(["operate"])),
  });
  await app.inject({
    method: "PUT",
    url: "/configs",
    headers: bearer(SECRET),
    payload: { payload: `MATCH,${SECRET},DIRECT` },
  });
  const refused = await app.inject({ method: "DELETE", url: "/connections", headers: bearer(token) });
  assert.equal(refused.statusCode, 403);
  const { entries } = (await app.inject({ url: "/api/svc/audit", headers: owner })).json<{
    entries: Entry[];
  }>();
  assert.deepEqual(
    entries.map(({ action, actor, target }) => [action, actor.kind, target]),
    [
      ["PUT /configs", "owner", ""],
      ["DELETE /connections/:id", "token", "abc"],
      ["user.update", "token", user],
      ["user.create", "token", user],
      ["token.create", "owner", id],
    ],
  );
  const [, , update, create] = entries as [Entry, Entry, Entry, Entry];
  assert.deepEqual([update.before, update.after], [{ enabled: true }, { enabled: false }]);
  assert.deepEqual(create.user, { id: user, name: "bob" });
  assert.equal(create.request, created.headers["x-request-id"]);
  assert.match(create.from, /^127\.0\.0\.1 \(for 203\.0\.113\.9\)$/);
  const text = JSON.stringify(entries);
  for (const secret of [token, uuid, SECRET, ADMIN_SECRET]) assert.ok(!text.includes(secret), secret);
  assert.deepEqual(journal.verifyAudit().faults, []);
});

interface Entry {
  readonly action: string;
  readonly actor: { readonly kind: string; readonly name: string };
  readonly target: string;
  readonly from: string;
  readonly request: string;
  readonly user?: object;
  readonly before?: unknown;
  readonly after?: unknown;
}
