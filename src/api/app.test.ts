import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthError } from "#core/errors.ts";
import { apiApp } from "../../test/support/api-app.ts";
import { routeTable } from "../../test/support/route-table.ts";
import { skipLarge } from "../../test/support/runs.ts";

const SECRET = "correct horse";
const BEARER = { authorization: `Bearer ${SECRET}` };
const FULL = { secret: SECRET, uiFolder: "/nonexistent", dohPath: "/dns-query" };

test("JSON is application/json without a charset, for results and errors", async () => {
  const { app } = await apiApp();
  for (const url of ["/version", "/configs", "/proxies", "/proxies/unknown", "/connections", "/openapi.json"])
    assert.equal((await app.inject({ url })).headers["content-type"], "application/json", url);
});

test("the route table holds what the index of the contract lists", async () => {
  const { app } = await apiApp(FULL);
  const rows = new Set(routeTable(app).map(({ method, pattern }) => `${method} ${pattern}`));
  const expected = `GET /, GET /version, GET /traffic, GET /memory, GET /logs, GET /connections, DELETE /connections,
    DELETE /connections/:id, GET /configs, PATCH /configs, PUT /configs, POST /configs/geo, GET /proxies,
    GET /proxies/:name, PUT /proxies/:name, DELETE /proxies/:name, GET /proxies/:name/delay, GET /group,
    GET /group/:name, GET /group/:name/delay, GET /providers/proxies, GET /providers/proxies/:provider,
    PUT /providers/proxies/:provider, GET /providers/proxies/:provider/healthcheck,
    GET /providers/proxies/:provider/:node, GET /providers/proxies/:provider/:node/healthcheck, GET /rules,
    PATCH /rules/disable, GET /providers/rules, PUT /providers/rules/:name, GET /dns/query, POST /cache/fakeip/flush,
    POST /cache/dns/flush, GET /storage/:key, PUT /storage/:key, DELETE /storage/:key, POST /restart, POST /upgrade,
    POST /upgrade/ui, POST /upgrade/geo, GET /ui, GET /ui/*, GET /dns-query, POST /dns-query, GET /openapi.json,
    GET /metrics, GET /api/svc/capabilities, GET /api/svc/kernel-direct/status, GET /api/svc/traffic-control/status,
    GET /api/svc/traffic-control/policies, PUT /api/svc/traffic-control/policies, GET /api/svc/traffic-control/rules,
    POST /api/svc/traffic-control/policies/:id/reset, GET /api/svc/traffic-control/reports,
    GET /api/svc/traffic-control/reports/summary, GET /api/svc/traffic-control/reports/export.csv,
    GET /api/svc/traffic-control/reports/export.ndjson, GET /api/svc/traffic-control/reports/month.html`;
  assert.deepEqual(
    expected.split(/,\s+/).filter((row) => !rows.has(row)),
    [],
  );
});

const MIB = 1_048_576;
/** Routes that take a whole configuration file. */
const LARGER = new Map([
  ["/api/svc/config", 24 * MIB],
  ["/api/svc/config/check", 24 * MIB],
  ["/api/svc/restore", 64 * MIB],
  ["/api/svc/restore/check", 64 * MIB],
]);
/** Of those that are refused by their query before a body is read. */
const QUERIES = new Map([["/api/svc/restore", `?sum=${"0".repeat(64)}`]]);

test(
  "every declared body over 1 MiB is 413, at 1 MiB it is not; whole files have a bound of their own",
  { skip: skipLarge },
  async () => {
    const { app } = await apiApp(FULL);
    for (const { method, url, pattern } of routeTable(app)) {
      if (!["PUT", "POST", "PATCH", "DELETE"].includes(method)) continue;
      const limit = LARGER.get(pattern) ?? MIB;
      const send = (size: number) =>
        app.inject({
          method,
          url: `${url}${QUERIES.get(pattern) ?? ""}`,
          payload: Buffer.alloc(size, 0x20),
          headers: BEARER,
        });
      const large = await send(limit + 1);
      if (large.statusCode === 405 || large.statusCode === 404) continue;
      const isDoh = pattern === "/dns-query";
      if (pattern.startsWith("/proxies/") || pattern.startsWith("/group/")) continue; // names are looked at first
      assert.equal(large.statusCode, 413, `${method} ${url}`);
      assert.equal(large.json<{ message: string; error: string }>().message !== "", true);
      if (!isDoh) assert.notEqual((await send(limit)).statusCode, 413, `${method} ${url}`);
    }
  },
);

test("controller-api.md §15.2 a preflight is 200 on every path, known or not, without credentials; refusals carry the headers too", async () => {
  const { app } = await apiApp(FULL);
  const origin = "https://panel.example";
  const headers = { origin, "access-control-request-method": "PATCH" };
  const paths = new Set(routeTable(app).map(({ url }) => url));
  for (const url of [...paths, "/nowhere", "/api/admin/users", "/proxies/%zz"]) {
    const answer = await app.inject({ method: "OPTIONS", url, headers });
    assert.equal(answer.statusCode, 200, url);
    assert.equal(answer.body, "");
    assert.equal(answer.headers["access-control-allow-origin"], "*", url);
    assert.match(String(answer.headers["access-control-allow-methods"]), /PATCH/);
  }
  const refusals = [
    ["/version", 401],
    ["/nowhere", 404],
    ["/proxies/%zz", 400],
  ] as const;
  for (const [url, status] of refusals) {
    const answer = await app.inject({ url, headers: { origin } });
    assert.equal(answer.statusCode, status);
    assert.equal(answer.headers["access-control-allow-origin"], "*", url);
    assert.match(String(answer.headers.vary), /Origin/);
  }
});

test("wrong methods: 405 with Allow, HEAD too; unknown paths: 404 in plain text", async () => {
  const { app } = await apiApp({ uiFolder: "/nonexistent" });
  const allow = async (method: "POST" | "HEAD" | "OPTIONS" | "DELETE", url: string) => {
    const answer = await app.inject({ method, url });
    assert.equal(answer.statusCode, 405, `${method} ${url}`);
    return answer.headers.allow;
  };
  assert.equal(await allow("POST", "/version"), "GET, OPTIONS");
  assert.equal(await allow("HEAD", "/configs"), "GET, PATCH, PUT, OPTIONS");
  assert.equal(await allow("OPTIONS", "/proxies/x"), "GET, PUT, DELETE, OPTIONS");
  assert.equal(await allow("HEAD", "/ui/index.html"), "GET, OPTIONS");
  assert.equal(await allow("DELETE", "/configs/"), "GET, PATCH, PUT, OPTIONS");
  const unknown = [
    "/nope",
    "/api/admin/overview",
    "/api/control/info",
    "/group/weights",
    "/version/",
    "/sub/svc/x",
  ];
  for (const url of unknown) {
    const answer = await app.inject(url);
    assert.equal(answer.statusCode, 404, url);
    if (url !== "/group/weights") assert.match(String(answer.headers["content-type"]), /^text\/plain/);
  }
  for (const [method, url] of [
    ["POST", "/cache/smart/flush"],
    ["DELETE", "/connections/smart/1"],
    ["PUT", "/rules/9f1c"],
  ] as const) {
    assert.equal((await app.inject({ method, url })).statusCode, 404, url);
  }
});

test("without a secret only hosts that cannot be rebound are served", async () => {
  const cors = {
    allowOrigins: ["https://panel.example:8443", "https://*.wild.example"],
    allowPrivateNetwork: true,
  };
  const { app } = await apiApp({ cors, hosts: ["router.lan"], dohPath: "/dns-query" });
  const status = async (host: string, url = "/version") =>
    (await app.inject({ url, headers: { host } })).statusCode;
  const ours =
    "localhost localhost:9090 LOCALHOST. app.localhost:1 127.0.0.1 127.0.0.1:9090 192.168.1.1:9090 [::1]:9090 [fd00::1] router.lan:9090 panel.example";
  for (const host of ours.split(" ")) assert.equal(await status(host), 200, host);
  const theirs =
    "evil.example evil.example:9090 localhost.evil.example a.wild.example 127.0.0.1.evil.example router.lan.evil.example x";
  for (const host of theirs.split(" ")) assert.equal(await status(host), 403, host);
  assert.notEqual(await status("evil.example", "/dns-query"), 403);
  const withSecret = (await apiApp({ secret: SECRET })).app;
  const answer = await withSecret.inject({ url: "/version", headers: { host: "evil.example", ...BEARER } });
  assert.equal(answer.statusCode, 200);
});

test("a fault of ours is a neutral 500, the cause stands in the log", async () => {
  const lines: string[] = [];
  const log = {
    debug() {},
    info() {},
    warning() {},
    error: (text: unknown) => void lines.push(String(text)),
  };
  const { app, control } = await apiApp({}, { log });
  control.fault = new Error("disk exploded", { cause: new Error("EIO") });
  const answer = await app.inject("/configs?token=hidden");
  const text = "Internal Server Error";
  assert.deepEqual([answer.statusCode, answer.json()], [500, { message: text, error: text }]);
  assert.match(lines.join(), /GET \/configs: disk exploded \(EIO\)/);
  assert.doesNotMatch(lines.join(), /hidden/);
});

test("a path that cannot be decoded is not repeated, nor the token behind it", async () => {
  const { app } = await apiApp(FULL);
  const answer = await app.inject("/proxies/%zz?token=hidden");
  assert.equal(answer.statusCode, 400);
  assert.doesNotMatch(answer.body, /zz|hidden/);
});

test("a peer that did not prove itself to us is no reason to ask our client for the secret", async () => {
  const { app, control } = await apiApp(FULL);
  control.fault = new AuthError("the server's certificate is refused");
  assert.equal((await app.inject({ url: "/configs", headers: BEARER })).statusCode, 500);
});

test("controller-api.md §15.8 /logs with an unknown level is 400", async () => {
  const { app } = await apiApp();
  for (const level of ["trace", "INFO", "warn", ""]) {
    assert.equal((await app.inject(`/logs?level=${level}`)).statusCode, 400, level);
  }
});
