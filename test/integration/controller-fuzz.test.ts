/** Every operation that the API's own document describes, with what it asks for, nearly that, and anything at all. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { openController } from "#api/open-controller.ts";
import { SILENT, type LogText } from "#core/log.ts";
import { OPEN_OPTIONS } from "../support/api-app.ts";
import { everyRoute, type ApiDocument, type Operation, type Parameter } from "../support/api-document.ts";
import { MemoryControl, NODE_NAMES } from "../support/memory-control.ts";
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

interface Sent {
  readonly path: string;
  readonly body: string | null;
}

interface Got {
  readonly status: number;
  readonly type: string;
  /** Null where a stream began instead, and for HEAD. */
  readonly text: string | null;
}

function requests(path: string, operation: Operation): fc.Arbitrary<Sent> {
  const name = fc.oneof(fc.constantFrom(...KNOWN_NAMES), anyText).map(encode);
  const filled = fc.array(
    fc.oneof({ weight: 9, arbitrary: name }, { weight: 1, arbitrary: fc.constant("%zz") }),
    {
      minLength: 3,
      maxLength: 3,
    },
  );
  const query = queries(operation.parameters.filter((parameter) => parameter.in === "query"));
  return fc.tuple(filled, query, bodies(operation)).map(([names, search, body]) => {
    let at = 0;
    return { path: path.replaceAll(/\{\w+\}/g, () => names[at++] as string) + search, body };
  });
}

function queries(parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const value = (parameter: Parameter) => fc.oneof(valid(parameter.schema).map(String), anyText);
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
  const schema = requestBody?.content["application/json"]?.schema;
  const anything = fc.oneof(
    fc.constantFrom(null, "", "{", "[[[[", "{}", "null", '{"a":1}x', "\ufeff{}"),
    fc.json(),
  );
  if (schema === undefined) return anything;
  const asked = fc.oneof(valid(schema), nearly(schema)).map((value) => JSON.stringify(value));
  return fc.oneof({ weight: 4, arbitrary: asked }, { weight: 1, arbitrary: anything });
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

async function send(
  port: number,
  agent: Agent,
  method: string,
  { path, body }: Sent,
  secret: string,
): Promise<Got> {
  const headers = {
    authorization: `Bearer ${secret}`,
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

test(`${RUNS} requests to every operation: only declared answers, no fault of ours`, async (context) => {
  const faults: string[] = [];
  const log = { ...SILENT, error: (text: LogText) => void faults.push(String(text)) };
  const control = new MemoryControl();
  const options = { ...OPEN_OPTIONS, ...everyRoute(control, new MemoryUsers()) };
  const listeners = { http: { host: "127.0.0.1", port: 0 } };
  await using controller = await openController({ ...options, listeners }, control, log);
  const port = controller.endpoints[0]?.port as number;
  const document = (await (await fetch(`http://127.0.0.1:${port}/openapi.json`)).json()) as ApiDocument;
  const isError = new Ajv2020().compile(document.components.schemas.Error as object);
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const statuses = new Map<number, number>();

  const check = (operation: Operation, got: Got): void => {
    statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1);
    const declared = operation.responses[got.status];
    if (declared === undefined)
      assert.ok(got.status >= 400 && got.status < 500, `${got.status} is not declared: ${got.text}`);
    if (got.text === null) return;
    if (got.type === "application/json" && got.status >= 400) {
      const error: unknown = JSON.parse(got.text);
      assert.ok(isError(error), `${got.text}: ${JSON.stringify(isError.errors)}`);
      const { message, error: same } = error as { message: string; error: string };
      assert.equal(same, message);
      assert.notEqual(message, "");
    } else if (got.type === "application/json") JSON.parse(got.text);
    else if (got.status === 204) assert.deepEqual([got.text, got.type], ["", ""]);
  };

  let operations = 0;
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods)) {
      operations++;
      const secret = operation.security.some((scheme) => "own" in scheme) ? ADMIN_SECRET : "";
      const property = fc.asyncProperty(requests(path, operation), async (sent) => {
        check(operation, await send(port, agent, method.toUpperCase(), sent, secret));
        assert.deepEqual(faults, [], `${method} ${sent.path}`);
      });
      await fc.assert(property, { numRuns: RUNS, seed: SEED });
    }
  agent.destroy();
  const counted = [...statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${times} × ${status}`);
  context.diagnostic(`${operations} operations: ${counted.join(", ")}`);
  assert.ok((statuses.get(200) ?? 0) > 0 && (statuses.get(204) ?? 0) > 0 && (statuses.get(400) ?? 0) > 0);
});
