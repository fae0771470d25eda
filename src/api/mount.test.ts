/** Routes of other parts of the program, and the document that describes all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { ApiError } from "#core/errors.ts";
import { apiApp } from "../../test/support/api-app.ts";
import { controllerRoutes } from "./controller/index.ts";
import { Metrics } from "./metrics/index.ts";
import { openApi } from "./openapi.ts";
import { SVC_OWNER } from "#core/access.ts";
import { route, type Route } from "./route.ts";
import { jsonObject } from "./shapes.ts";
import { Subscribers } from "./subscriber.ts";
import { MemoryControl } from "../../test/support/memory-control.ts";
import { OPEN_OPTIONS } from "../../test/support/api-app.ts";

const ADMIN: readonly Route[] = [
  route({
    method: "POST",
    path: "/api/admin/users",
    summary: "Create",
    scope: "users",
    guard(request, reply) {
      reply.header("cache-control", "no-store");
      if (request.headers.authorization === "Bearer admin") return SVC_OWNER;
      reply.header("www-authenticate", "Bearer");
      throw new ApiError(401, "Unauthorized");
    },
    body: jsonObject({ name: z.string() }),
    answer: { status: 201, description: "Created" },
    handle: ({ body }) => ({ name: body.name }),
  }),
  route({
    method: "HEAD",
    path: "/sub/svc/:token",
    scope: "open",
    summary: "Subscription",
    answer: { status: 200, type: "text/plain", description: "" },
    handle: ({ reply }) => reply.type("text/plain").send(""),
  }),
];

test("a guard replaces the Controller secret: neither secret opens the other's routes", async () => {
  const { app } = await apiApp({ secret: "controller", mounts: () => ADMIN });
  const create = async (authorization: string, url = "/api/admin/users") =>
    await app.inject({ method: "POST", url, payload: { name: "x" }, headers: { authorization } });
  assert.equal((await create("Bearer admin")).statusCode, 201);
  const refused = await create("Bearer controller");
  assert.equal(refused.statusCode, 401);
  assert.equal(refused.headers["cache-control"], "no-store");
  assert.equal(refused.headers["www-authenticate"], "Bearer");
  assert.equal((await create("Bearer admin", "/api/admin/users/")).statusCode, 404);
  assert.equal((await create("Bearer controller", "/%61pi/admin/users")).statusCode, 401);
  const { statusCode } = await app.inject({ url: "/version", headers: { authorization: "Bearer admin" } });
  assert.equal(statusCode, 401);
  assert.equal((await app.inject({ method: "HEAD", url: "/sub/svc/t" })).statusCode, 200);
  assert.equal((await app.inject({ method: "GET", url: "/sub/svc/t" })).statusCode, 405);
});

test("what is mounted may depend on the transport", async () => {
  const mounts = ({ isLocal }: { isLocal: boolean }) => (isLocal ? ADMIN : []);
  const transport = { kind: "http", isLocal: false } as const;
  const { app } = await apiApp({ secret: "s", mounts }, { transport });
  assert.equal((await app.inject({ method: "POST", url: "/api/admin/users" })).statusCode, 404);
});

test("the document and the routes say the same", async () => {
  const { app } = await apiApp({ uiFolder: "/x", dohPath: "/dns-query" });
  const control = new MemoryControl();
  const env = { options: { ...OPEN_OPTIONS, uiFolder: "/x", dohPath: "/dns-query" }, control };
  const transport = { kind: "http", isLocal: true } as const;
  const log = { debug() {}, info() {}, warning() {}, error() {} };
  const subscribers = new Subscribers();
  const routes = await controllerRoutes({
    ...env,
    transport,
    log,
    upgrades: new WeakMap(),
    subscribers,
    metrics: new Metrics(control),
  });
  const shown = (await app.inject("/openapi.json")).json<{
    paths: Record<string, Record<string, unknown>>;
  }>();
  const listed = Object.entries(shown.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method} ${path}`),
  );
  const declared = routes.map(({ method, path }) => {
    return `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{path}")}`;
  });
  assert.deepEqual(listed.sort(), declared.sort());
  assert.ok(routes.every(({ summary, answer }) => summary !== "" && answer.description !== ""));
});

test("a body's schema stands in the document as clients send it", () => {
  const { paths } = openApi(ADMIN, "1");
  assert.deepEqual(Object.keys(paths), ["/api/admin/users", "/sub/svc/{token}"]);
  const create = JSON.stringify(paths["/api/admin/users"]);
  assert.match(create, /"properties":\{"name":\{"type":"string"\}\},"required":\["name"\]/);
});

test("of a body with thousands of faults the answer names the first", async () => {
  const { app } = await apiApp();
  const payload = JSON.stringify({ "skip-auth-prefixes": Array(5000).fill("nonsense") });
  const answer = await app.inject({ method: "PATCH", url: "/configs", payload });
  const { details } = answer.json<{ details: { path: string; message: string }[] }>();
  assert.deepEqual([answer.statusCode, details.length], [400, 16]);
  assert.equal(details[0]?.path, "skip-auth-prefixes.0");
});
