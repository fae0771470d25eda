/** Every operation that the API's own document describes, with what it asks for, nearly that, and anything at all. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { basename } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { test } from "node:test";
import fc from "fast-check";
import { openController } from "#api/open-controller.ts";
import { SILENT, type LogText } from "#core/log.ts";
import { AnswerCheck, operationsOf, type Got } from "../support/answer-check.ts";
import { OPEN_OPTIONS } from "../support/api-app.ts";
import { everyRoute, type ApiDocument, type Operation, type Parameter } from "../support/api-document.ts";
import { busyGovernance } from "../support/memory-governance.ts";
import { MemoryControl } from "../support/memory-control.ts";
import { NODE_NAMES } from "../support/memory-proxies.ts";
import { ADMIN_SECRET, MemoryUsers } from "../support/memory-users.ts";
import { anyText, nearly, valid } from "../support/schema-values.ts";

const RUNS = Number(process.env["WEIR_TEST_API_RUNS"] ?? 60);
const SEED = 20_260_101;

/** Names that exist in the core in memory, so that requests get past the look-up. */
const KNOWN_NAMES = [
  ...NODE_NAMES,
  "Proxy",
  "Auto",
  "Broken",
  "slow",
  "closed",
  "remote/1",
  "default",
  "ads",
  "1",
];

/** Enough to outlast the deletions. */
const USERS = Array.from({ length: 60 }, (_, at) => String(at + 1));
const DNS_QUESTION = Buffer.from("000101000001000000000000000001000100", "hex");
/** What makes requests go well, by the parameter or the member. */
const FAMILIAR = new Map<string, readonly string[]>([
  ["{id}", USERS],
  ["{token}", ["1"]],
  ["{provider}", ["remote/1"]],
  ["{node}", NODE_NAMES],
  ["{name}", ["Proxy", "Auto", "Balance", "Node 1"]],
  ["{path}", [basename(import.meta.filename)]],
  ["name", ["Node 1"]],
  ["inbound", ["edge"]],
  ["flow", [""]],
  ["timeout", ["500"]],
  ["expected", ["*", "200"]],
  ["level", ["info"]],
  ["dns", [DNS_QUESTION.toString("base64url")]],
  ["from", ["1785300000"]],
  ["to", ["1785312000"]],
]);
/** What cannot go well in a core in memory: it has no file, no fleet and no releases; ids of tokens and sums of backups are not guessed. */
const NEVER_WELL = [
  "DELETE /api/svc/fleet/nodes/{name}",
  "DELETE /api/svc/tokens/{id}",
  "GET /api/svc/config/versions/{id}",
  "GET /api/svc/fleet",
  "GET /api/svc/setup/links",
  "PATCH /api/svc/config/edits",
  "POST /api/svc/config/cancel",
  "POST /api/svc/config/confirm",
  "POST /api/svc/config/preview",
  "POST /api/svc/config/rollback",
  "POST /api/svc/fleet/nodes/{name}/drain",
  "POST /api/svc/fleet/nodes/{name}/resume",
  "POST /api/svc/restore",
  "POST /api/svc/session/code",
  "POST /api/svc/setup/nodes",
  "POST /api/svc/update/check",
  "POST /upgrade",
  "POST /upgrade/ui",
  "PUT /api/svc/config",
  "PUT /providers/rules/{name}",
];

interface Sent {
  readonly path: string;
  readonly body: string | null;
}

function requests(path: string, operation: Operation): fc.Arbitrary<Sent> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => nameFor(parameter as string));
  const query = queries(operation.parameters.filter((parameter) => parameter.in === "query"));
  return fc.tuple(fc.tuple(...names), query, bodies(operation)).map(([filled, search, body]) => {
    let at = 0;
    return { path: path.replaceAll(/\{\w+\}/g, () => filled[at++] as string) + search, body };
  });
}

function nameFor(parameter: string): fc.Arbitrary<string> {
  const familiar = FAMILIAR.get(`{${parameter}}`) ?? KNOWN_NAMES;
  // without a name the path would be that of another operation
  const written = (name: fc.Arbitrary<string>) => name.map((text) => encode(text) || "-");
  return fc.oneof(
    { weight: 5, arbitrary: written(fc.constantFrom(...familiar)) },
    { weight: 2, arbitrary: written(fc.constantFrom(...KNOWN_NAMES)) },
    { weight: 2, arbitrary: written(anyText) },
    { weight: 1, arbitrary: fc.constant("%zz") },
  );
}

function queries(parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const value = ({ name, schema }: Parameter) =>
    fc.oneof(fc.constantFrom(...(FAMILIAR.get(name) ?? ["1"])), valid(schema).map(String), anyText);
  const pairs = parameters.map((parameter) =>
    fc.oneof(
      { weight: 6, arbitrary: value(parameter).map((one) => [`${parameter.name}=${encode(one)}`]) },
      { weight: 2, arbitrary: fc.constant<string[]>([]) },
      {
        weight: 1,
        arbitrary: value(parameter).map((one) => [parameter.name, `${parameter.name}=${encode(one)}`]),
      },
    ),
  );
  const stray = fc.constantFrom([], [], ["x=1"], ["token=x"], ["a[]=%zz&&=&"]);
  return fc.tuple(stray, ...pairs).map((lists) => {
    const all = lists.flat();
    return all.length === 0 ? "" : `?${all.join("&")}`;
  });
}

function bodies({ requestBody }: Operation): fc.Arbitrary<string | null> {
  const anything = fc.oneof(
    fc.constantFrom(null, "", "{", "[[[[", "{}", "null", '{"a":1}x', "\ufeff{}", DNS_QUESTION.toString()),
    fc.json(),
  );
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema === undefined) return anything;
  const asked = fc.oneof(valid(schema).map(familiar), valid(schema), nearly(schema));
  const text = asked.map((value) => JSON.stringify(value));
  return fc.oneof({ weight: 4, arbitrary: text }, { weight: 1, arbitrary: anything });
}

/** With what the core in memory knows in place of what was made up. */
function familiar(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const known = Object.entries(value).map(([key, member]) => [key, FAMILIAR.get(key)?.[0] ?? member]);
  return Object.fromEntries(known) as unknown;
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Numbers hardly ever hit the revision in force: every second one is made to. */
function upToDate({ path, body }: Sent, revision: number): Sent {
  const right = (whole: string, before: string, digits: string): string =>
    Number(digits) % 2 === 0 ? whole : `${before}${revision}`;
  return {
    path: path.replace(/(revision=)(\d+)/, right),
    body: body?.replace(/("revision":)(\d+)/, right) ?? null,
  };
}

interface Target {
  readonly port: number;
  readonly agent: Agent;
  readonly secret: string;
  readonly mediaType: string;
}

async function send(
  { port, agent, secret, mediaType }: Target,
  method: string,
  { path, body }: Sent,
): Promise<Got> {
  const headers = {
    authorization: `Bearer ${secret}`,
    "content-type": mediaType,
    ...(body === null ? {} : { "content-length": Buffer.byteLength(body) }), // Node leaves it out for GET and DELETE
  };
  const request = httpRequest({ host: "127.0.0.1", port, agent, method, path, headers });
  request.end(body ?? undefined);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const { statusCode = 0 } = response;
  const type = (response.headers["content-type"] ?? "").split(";", 1)[0] as string;
  const endless = response.headers["transfer-encoding"] === "chunked" && statusCode === 200;
  if (!endless) {
    const text = await textOf(response);
    return { status: statusCode, type, text: method === "HEAD" ? null : text };
  }
  response.on("error", () => {}); // our own doing
  request.destroy();
  return { status: statusCode, type, text: null };
}

test(`${RUNS} requests to every operation: every answer is as declared, no fault of ours`, async (context) => {
  const faults: string[] = [];
  const log = { ...SILENT, error: (text: LogText) => void faults.push(String(text)) };
  const control = new MemoryControl(busyGovernance());
  for (const host of ["a.example", "b.example"]) control.connect(host);
  const users = new MemoryUsers(USERS);
  const revision = (): number => users.admin.inbounds()[0]?.revision ?? 0;
  const options = { ...OPEN_OPTIONS, ...everyRoute(control, users), uiFolder: import.meta.dirname };
  const listeners = { http: { host: "127.0.0.1", port: 0 } };
  await using controller = await openController({ ...options, listeners }, control, log);
  const port = controller.endpoints[0]?.port as number;
  const document = (await (await fetch(`http://127.0.0.1:${port}/openapi.json`)).json()) as ApiDocument;
  const answers = new AnswerCheck(document);
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const statuses = new Map<number, number>();
  const successes = new Map<string, number>();
  for (const [path, method, operation] of operationsOf(document)) {
    const name = `${method} ${path}`;
    successes.set(name, 0);
    const [mediaType = "text/plain"] = Object.keys(operation.requestBody?.content ?? {});
    const secret = operation.security.some((scheme) => "own" in scheme) ? ADMIN_SECRET : "";
    const property = fc.asyncProperty(requests(path, operation), async (made) => {
      const sent = upToDate(made, revision());
      const got = await send({ port, agent, secret, mediaType }, method, sent);
      statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1);
      if (got.status < 400) successes.set(name, (successes.get(name) ?? 0) + 1);
      answers.check(operation, got, `${method} ${sent.path}`);
      assert.deepEqual(faults, [], `${method} ${sent.path}`);
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
  }
  agent.destroy();
  const counted = [...statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${times} × ${status}`);
  context.diagnostic(`${successes.size} operations: ${counted.join(", ")}`);
  const never = [...successes].flatMap(([name, times]) => (times === 0 ? [name] : []));
  assert.deepEqual(never.sort(byText), NEVER_WELL);
  assert.ok((statuses.get(400) ?? 0) > 0 && (statuses.get(404) ?? 0) > 0);
});
