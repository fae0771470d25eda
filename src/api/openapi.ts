/** /openapi.json, made from the declarations that serve and check the requests. */
import * as z from "zod";
import type { RouteScope } from "#core/access.ts";
import { MAX_BODY_BYTES } from "./body.ts";
import { JsonText, route, type Route } from "./route.ts";

const documentShape = z.object({
  openapi: z.literal("3.1.0"),
  info: z.object({ title: z.string(), version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ responses: z.looseObject({}) }))),
  components: z.looseObject({}),
});

export function openApiRoutes(routes: readonly Route[], version: string): readonly Route[] {
  const own: Route = route({
    method: "GET",
    scope: "read",
    path: "/openapi.json",
    summary: "This document",
    answer: { status: 200, description: "OpenAPI 3.1", schema: documentShape },
    handle: () => new JsonText(document()),
  });
  const document = memoise(() => JSON.stringify(openApi([...routes, own], version)));
  return [own];
}

function memoise<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

/** What `errors.ts` writes: both texts are the same; `details` where a body or query has the wrong shape. */
const errorShape = z.object({
  message: z.string().min(1),
  error: z.string().min(1),
  details: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

type Schema = Record<string, unknown>;
type Schemas = Record<string, Schema>;

export function openApi(routes: readonly Route[], version: string) {
  const paths: Record<string, Record<string, unknown>> = {};
  const schemas: Schemas = { Error: answerSchema(errorShape, {}) };
  for (const each of routes) {
    const path = each.path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{path}");
    (paths[path] ??= {})[each.method.toLowerCase()] = operation(each, path, schemas);
  }
  return {
    openapi: "3.1.0",
    info: { title: "weir Controller API", version },
    paths,
    components: {
      securitySchemes: {
        secret: { type: "http", scheme: "bearer", description: "The Controller secret" },
        own: { type: "http", scheme: "bearer", description: "The secret of the resource itself" },
        token: { type: "http", scheme: "bearer", description: "A token with the scope that is named" },
      },
      schemas,
    },
  };
}

function operation(each: Route, path: string, schemas: Schemas) {
  const { summary, scope, guard, answer } = each;
  return {
    summary,
    security: securityOf(scope, guard !== undefined),
    parameters: [...pathParameters(path), ...queryParameters(each)],
    ...requestBody(each),
    responses: {
      [answer.status]: { description: answer.description, ...contentOf(each, schemas) },
      ...faultsOf(each),
      "4XX": { description: "A mistake of the caller", ...(each.method === "HEAD" ? {} : MISTAKE) },
    },
  };
}

/** The secret that is the owner's, or a token with the scope. */
function securityOf(scope: RouteScope, hasOwnSecret: boolean) {
  if (scope === "open") return [];
  const owner = hasOwnSecret ? { own: [] } : { secret: [] };
  return scope === "owner" ? [owner] : [owner, { token: [scope] }];
}

const ERROR = { schema: { $ref: "#/components/schemas/Error" } };
const TEXT = { schema: { type: "string" } };
/** Text where no resource is: nothing has been found that speaks JSON. */
const MISTAKE = { content: { "application/json": ERROR, "text/plain": TEXT } };

function contentOf({ answer, method }: Route, schemas: Schemas): object {
  const { status, type = "application/json", otherTypes = [], schema } = answer;
  if (method === "HEAD" || status === 204 || status === 307) return {};
  const own = schema === undefined ? plain(type) : { schema: answerSchema(schema, schemas) };
  const others = otherTypes.map((other) => [other, plain(other)] as const);
  return { content: { [type]: own, ...Object.fromEntries(others) } };
}

/** Text, JSON from outside, or bytes. */
function plain(type: string): object {
  if (type.startsWith("text/")) return TEXT;
  return type === "application/json" ? { schema: {} } : {};
}

function requestBody({ body, rawBody, maxBodyBytes = MAX_BODY_BYTES }: Route): object {
  if (body === undefined && rawBody === undefined) return {};
  const type = rawBody?.type ?? "application/json";
  const schema = rawBody?.schema ?? body;
  const described = schema === undefined ? {} : { schema: schemaOf(schema) };
  return {
    requestBody: {
      required: true,
      description: `At most ${maxBodyBytes} bytes`,
      content: { [type]: described },
    },
  };
}

/** A fault of what speaks no JSON is a line of text. */
function faultsOf({ answer, faults = {}, stream }: Route) {
  const all = stream === true ? { 503: "Too many open streams", ...faults } : faults;
  const content = answer.type === undefined ? { "application/json": ERROR } : { "text/plain": TEXT };
  const entries = Object.entries(all).map(([status, description]) => [
    status,
    { description, ...(Number(status) < 400 ? {} : { content }) },
  ]);
  return Object.fromEntries(entries);
}

function pathParameters(path: string) {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters({ query, stream }: Route) {
  const { properties = {}, required = [] } = query === undefined ? {} : schemaOf(query);
  const own = Object.entries(properties).map(([name, schema]) => {
    return { name, in: "query", required: required.includes(name), schema };
  });
  const token = {
    name: "token",
    in: "query",
    required: false,
    description: "WebSocket only: the secret",
    schema: { type: "string" },
  };
  return stream === true ? [...own, token] : own;
}

/** What clients may send. */
function schemaOf(schema: z.ZodType): z.core.JSONSchema.BaseSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return rest;
}

/** What they get: nothing beyond what is named. Schemas with a name of their own go to `shared`. */
function answerSchema(schema: z.ZodType, shared: Schemas): Schema {
  const text = JSON.stringify(z.toJSONSchema(schema, { io: "output" }));
  const moved = text.replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/');
  const { $schema: _, $defs = {}, ...own }: Schema & { $defs?: Schemas } = JSON.parse(moved);
  Object.assign(shared, $defs);
  return own;
}
