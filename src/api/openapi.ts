/** /openapi.json, made from the declarations that serve and check the requests. */
import { z } from "zod";
import { MAX_BODY_BYTES } from "./body.ts";
import { JsonText, route, type Route } from "./route.ts";

export function openApiRoutes(routes: readonly Route[], version: string): readonly Route[] {
  const own: Route = route({
    method: "GET",
    path: "/openapi.json",
    summary: "This document",
    answer: { status: 200, description: "OpenAPI 3.1" },
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
  message: z.string(),
  error: z.string(),
  details: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

export function openApi(routes: readonly Route[], version: string) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const each of routes) {
    const path = each.path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{path}");
    (paths[path] ??= {})[each.method.toLowerCase()] = operation(each, path);
  }
  return {
    openapi: "3.1.0",
    info: { title: "weir Controller API", version },
    paths,
    components: {
      securitySchemes: {
        secret: { type: "http", scheme: "bearer", description: "The Controller secret" },
        own: { type: "http", scheme: "bearer", description: "The secret of the resource itself" },
      },
      schemas: { Error: schemaOf(errorShape) },
    },
  };
}

function operation(each: Route, path: string) {
  const { summary, access = "secret", answer, body, maxBodyBytes = MAX_BODY_BYTES } = each;
  return {
    summary,
    security: access === "open" ? [] : [access === "secret" ? { secret: [] } : { own: [] }],
    parameters: [...pathParameters(path), ...queryParameters(each)],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            description: `At most ${maxBodyBytes} bytes`,
            content: json(schemaOf(body)),
          },
        }),
    responses: {
      [answer.status]: {
        description: answer.description,
        ...(answer.status === 200 || answer.status === 201
          ? { content: { [answer.type ?? "application/json"]: {} } }
          : {}),
      },
      ...faultsOf(each),
      default: { description: "What went wrong", content: json({ $ref: "#/components/schemas/Error" }) },
    },
  };
}

/** A fault of what speaks no JSON is a line of text. */
function faultsOf({ answer, faults = {}, stream }: Route) {
  const all = stream === true ? { 503: "Too many open streams", ...faults } : faults;
  const error =
    answer.type === undefined ? json({ $ref: "#/components/schemas/Error" }) : { "text/plain": {} };
  const entries = Object.entries(all).map(([status, description]) => [
    status,
    { description, content: error },
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

function pathParameters(path: string) {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

function queryParameters({ query, stream }: Route) {
  const { properties = {}, required = [] } = query === undefined ? {} : (schemaOf(query) as ObjectSchema);
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

function schemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return rest;
}

function json(schema: unknown) {
  return { "application/json": { schema } };
}
