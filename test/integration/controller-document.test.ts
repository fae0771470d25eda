/** What the real program answers, held to its own document; and that the document tells no secrets. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { AnswerCheck, operationsOf } from "../support/answer-check.ts";
import type { ApiDocument, Operation } from "../support/api-document.ts";
import {
  FULL_ADMIN_SECRET,
  FULL_SECRET,
  SECRETS,
  startFullCore,
  type FullCore,
} from "../support/full-core.ts";
import { openTcpOrigin, type Origin } from "../support/origin.ts";

let origin: Origin;
let full: FullCore;
let document: ApiDocument;
let answers: AnswerCheck;
let tunnel: Socket;

before(async () => {
  origin = await openTcpOrigin(() => {});
  full = await startFullCore(origin.port);
  document = (await (await ask("GET", "/openapi.json")).json()) as ApiDocument;
  answers = new AnswerCheck(document);
  tunnel = connect(full.mixed, "127.0.0.1");
  tunnel.write(`CONNECT www.test:${origin.port} HTTP/1.1\r\nHost: www.test\r\n\r\n`);
  await once(tunnel, "data");
});

after(async () => {
  tunnel?.destroy();
  await full?.[Symbol.asyncDispose]();
  await origin?.[Symbol.asyncDispose]();
});

function ask(method: string, path: string, body?: unknown): Promise<Response> {
  const secret = path.startsWith("/api/admin/") ? FULL_ADMIN_SECRET : FULL_SECRET;
  return fetch(full.base + path, {
    method,
    headers: { authorization: `Bearer ${secret}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    redirect: "manual",
  });
}

/** Asks, holds the answer to the document and gives it back. */
async function checked(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  const operation = operationAt(method, path);
  const answer = await ask(method, path, body);
  const type = (answer.headers.get("content-type") ?? "").split(";", 1)[0] as string;
  const text = await answer.text();
  answers.check(operation, { status: answer.status, type, text }, `${method} ${path}`);
  return { status: answer.status, text };
}

function operationAt(method: string, path: string): Operation {
  const [bare = ""] = path.split("?", 1);
  const fits = (pattern: string) => new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(bare);
  const found = Object.entries(document.paths).find(
    ([pattern, methods]) => fits(pattern) && method.toLowerCase() in methods,
  );
  assert.ok(found !== undefined, `${method} ${path} is not in the document`);
  return found[1][method.toLowerCase()] as Operation;
}

const NODE = encodeURIComponent("a/b 50% x#y 🇩🇪");
const url = () => encodeURIComponent(`${full.base}/ui/`);

/** A success each; what changes something stands behind what looks at it. */
const ASKED: readonly (readonly [
  method: string,
  path: string | (() => string),
  status: number,
  body?: unknown,
])[] = [
  ["GET", "/", 200],
  ["GET", "/version", 200],
  ["GET", "/configs", 200],
  ["GET", "/connections", 200],
  ["GET", "/proxies", 200],
  ["GET", `/proxies/${NODE}`, 200],
  ["GET", () => `/proxies/${NODE}/delay?timeout=5000&url=${url()}`, 200],
  ["GET", () => `/proxies/closed/delay?timeout=5000&url=${url()}`, 503],
  ["GET", () => `/proxies/silent/delay?timeout=300&url=${url()}`, 504],
  ["GET", `/proxies/${NODE}/delay?timeout=40000`, 400],
  ["GET", "/group", 200],
  ["GET", "/group/Auto", 200],
  ["GET", () => `/group/Auto/delay?timeout=5000&url=${url()}`, 200],
  ["GET", "/group/Auto", 200],
  ["GET", "/providers/proxies", 200],
  ["GET", "/providers/proxies/remote%2F1", 200],
  ["GET", "/providers/proxies/remote%2F1/inner", 200],
  ["GET", () => `/providers/proxies/remote%2F1/inner/healthcheck?timeout=5000&url=${url()}`, 200],
  ["GET", "/providers/rules", 200],
  ["GET", "/rules", 200],
  ["GET", "/rules/explain?destination=www.test", 200],
  ["GET", "/dns/query?name=www.test", 500],
  ["PUT", "/storage/zashboard", 204, { a: [1, "x"] }],
  ["GET", "/storage/zashboard", 200],
  ["GET", "/metrics", 200],
  ["GET", "/openapi.json", 200],
  ["GET", "/api/svc/capabilities", 200],
  ["GET", "/api/svc/kernel-direct/status", 200],
  ["GET", "/api/svc/kernel-direct/status", 200],
  ["GET", "/api/svc/traffic-control/status", 200],
  ["GET", "/api/svc/traffic-control/policies", 200],
  ["GET", "/api/svc/traffic-control/rules", 200],
  ["POST", "/api/svc/traffic-control/policies/phone/reset", 200],
  ["GET", "/api/svc/traffic-control/reports", 200],
  ["GET", "/api/svc/traffic-control/reports?key=device:phone&granularity=month", 200],
  ["GET", "/api/svc/traffic-control/reports?granularity=week", 400],
  ["GET", "/api/svc/traffic-control/reports/summary", 200],
  ["GET", "/api/svc/traffic-control/reports/export.csv", 200],
  ["GET", "/api/svc/traffic-control/reports/export.ndjson", 200],
  ["GET", "/api/svc/traffic-control/reports/month.html", 200],
  ["GET", "/api/admin/overview", 200],
  ["GET", "/api/admin/status", 200],
  ["GET", "/api/admin/protocols", 200],
  ["GET", "/api/admin/inbounds", 200],
  ["GET", "/api/admin/listeners", 200],
  ["GET", "/api/admin/users", 200],
  ["GET", "/api/admin/users/unknown", 404],
  ["PUT", "/proxies/Proxy", 204, { name: "Node 1" }],
  ["DELETE", "/proxies/Auto", 204],
  ["PATCH", "/configs", 204, { mode: "rule" }],
  ["PATCH", "/rules/disable", 204, { 0: false }],
  ["POST", "/cache/dns/flush", 204],
  ["POST", "/cache/fakeip/flush", 204],
  ["PUT", "/configs", 400, { path: "relative" }],
  ["POST", "/upgrade", 500],
  ["POST", "/upgrade/ui", 500],
  ["DELETE", "/connections/none", 204],
];

test("every answer of the real program is as its document says", async (context) => {
  for (const [method, path, status, body] of ASKED) {
    const where = typeof path === "string" ? path : path();
    const answer = await checked(method, where, body);
    assert.equal(answer.status, status, `${method} ${where}: ${answer.text}`);
  }
  context.diagnostic(`${ASKED.length} requests`);
});

test("controller-api.md §6.3 a group of which no member answers says so", async () => {
  const { status, text } = await checked("GET", `/group/Spread/delay?timeout=0&url=${url()}`);
  const message = "get delay: all proxies timeout";
  assert.deepEqual([status, JSON.parse(text)], [504, { message, error: message }]);
});

interface UserJson {
  readonly id: string;
  readonly revision: number;
}

test("managed users: every step of one's life is as the document says", async () => {
  const json = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const { status, text } = await checked(method, path, body);
    assert.ok(status < 300, `${method} ${path}: ${text}`);
    return JSON.parse(text === "" ? "null" : text) as T;
  };
  const { inbounds } = await json<{ inbounds: readonly { revision: number }[] }>(
    "GET",
    "/api/admin/inbounds",
  );
  const revision = inbounds[0]?.revision as number;
  const limits = { quota: { total_bytes: 5, reset: "month" }, expires_at: 4_102_444_800_000, ip_limit: 2 };
  const draft = { inbound: "edge", name: "new", revision, ...limits };
  const made = await json<UserJson>("POST", "/api/admin/users", draft);
  const at = `/api/admin/users/${made.id}`;
  await json("GET", at);
  assert.equal((await checked("PUT", at, { revision: 1, name: "x" })).status, 409);
  const changed = await json<UserJson>("PUT", at, { revision: made.revision, name: "other" });
  const reset = await json<UserJson>("POST", `${at}/reset-traffic`, { revision: changed.revision });
  const rotated = await json<UserJson & { subscription_url: string }>("POST", `${at}/rotate-subscription`, {
    revision: reset.revision,
  });
  const link = new URL(rotated.subscription_url).pathname;
  for (const format of ["", "?format=base64", "?format=mihomo", "?format=sing-box", "?format=html"])
    assert.equal((await checked("GET", link + format)).status, 200, format);
  assert.equal((await checked("GET", `${link}?format=other`)).status, 404);
  await json("GET", "/api/admin/users?inbound=edge");
  assert.equal((await checked("DELETE", `${at}?revision=${rotated.revision}`)).status, 204);
  assert.equal((await checked("GET", link)).status, 404);
});

test("every record of the streams is as the document says, over both ways", async () => {
  for (const path of [
    "/traffic",
    "/memory",
    "/logs?level=debug",
    "/logs?level=debug&format=structured",
    "/connections",
  ]) {
    const operation = operationAt("GET", path);
    const check = (text: string) =>
      answers.check(operation, { status: 200, type: "application/json", text }, path);
    const query = `${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(FULL_SECRET)}`;
    const socket = new WebSocket(`ws://127.0.0.1:${full.controller}${path}${query}`);
    const talking = path.startsWith("/logs") ? setInterval(() => void chatter(), 20) : undefined;
    const [first] = (await once(socket, "message")) as [Buffer];
    check(first.toString());
    socket.terminate();
    if (path !== "/connections") {
      const leave = new AbortController();
      const headers = { authorization: `Bearer ${FULL_SECRET}` };
      const { body } = await fetch(full.base + path, { headers, signal: leave.signal });
      const { value } = await (body as ReadableStream<Uint8Array>).getReader().read();
      const lines = Buffer.from(value as Uint8Array)
        .toString()
        .trimEnd()
        .split("\n");
      for (const line of lines) check(line);
      leave.abort();
    }
    clearInterval(talking);
  }
});

/** Something for the log. */
async function chatter(): Promise<void> {
  const socket = connect(full.mixed, "127.0.0.1");
  socket.on("error", () => {}); // it is over soon
  socket.write(`CONNECT more.test:${origin.port} HTTP/1.1\r\nHost: more.test\r\n\r\n`);
  await once(socket, "data");
  socket.destroy();
}

test("every success in JSON has a shape; bodies that are read are described", () => {
  let shapes = 0;
  for (const [path, method, { responses, requestBody }] of operationsOf(document)) {
    const success = Object.entries(responses).find(([status]) => /^[23]\d\d$/.test(status));
    assert.ok(success !== undefined, `${method} ${path}`);
    const schema = success[1].content?.["application/json"]?.schema;
    const isAnything = path === "/storage/{key}" || path === "/sub/svc/{token}";
    if (success[1].content?.["application/json"] === undefined) continue;
    assert.ok(schema !== undefined && (isAnything || Object.keys(schema).length > 0), `${method} ${path}`);
    shapes++;
    if (["PUT", "PATCH"].includes(method) && success[0] === "200") assert.ok(requestBody !== undefined, path);
  }
  assert.ok(shapes > 35, `${shapes}`);
  for (const [path, method] of [
    ["/storage/{key}", "put"],
    ["/configs", "patch"],
    ["/api/admin/users", "post"],
  ] as const)
    assert.ok(document.paths[path]?.[method]?.requestBody !== undefined, path);
});

test("objects of the document are closed: a member that is not named is a fault", () => {
  const open: string[] = [];
  const walk = (schema: unknown, where: string): void => {
    if (typeof schema !== "object" || schema === null) return;
    const { type, properties, additionalProperties } = schema as Record<string, unknown>;
    if (type === "object" && properties !== undefined && additionalProperties !== false) open.push(where);
    for (const [key, value] of Object.entries(schema)) walk(value, `${where}/${key}`);
  };
  walk(document.components.schemas, "components");
  for (const [path, method, { responses }] of operationsOf(document)) walk(responses, `${method} ${path}`);
  // JSON Schemas themselves, which may have any member.
  const schemas = ["GET /openapi.json/", "GET /api/svc/config/schema/"];
  const known = open.filter((where) => schemas.every((start) => !where.startsWith(start)));
  assert.deepEqual(known, []);
});

const SECRET_NAMES = /secret|password|uuid|token|private|credential|subscription_url/i;

test("the document holds no secret: none of the configuration, no example under such a name", async () => {
  const { text } = await checked("GET", "/openapi.json");
  for (const secret of SECRETS) assert.ok(!text.includes(secret), secret);
  const { text: configs } = await checked("GET", "/configs");
  for (const secret of SECRETS) assert.ok(!configs.includes(secret), secret);
  const walk = (value: unknown, name: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, member] of Object.entries(value)) {
      const isValue = ["example", "examples", "default"].includes(key);
      const says = typeof member !== "object" || member === null ? member : JSON.stringify(member);
      if (isValue) assert.ok(!SECRET_NAMES.test(name) || says === "", `${name}: ${key} ${String(says)}`);
      if (isValue)
        assert.doesNotMatch(String(says), /[0-9a-f]{8}-[0-9a-f]{4}-|\bvless:\/\/|[A-Za-z0-9_-]{43}/);
      walk(member, key === "schema" ? name : key);
    }
  };
  walk(JSON.parse(text), "");
});
