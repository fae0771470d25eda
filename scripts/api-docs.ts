/** `npm run docs`: writes docs/api-reference.md from the document that the Controller serves, and docs/keys.md. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiApp } from "../test/support/api-app.ts";
import {
  everyRoute,
  type ApiDocument,
  type JsonSchema,
  type Operation,
} from "../test/support/api-document.ts";
import { MemoryControl } from "../test/support/memory-control.ts";
import { MemoryUsers } from "../test/support/memory-users.ts";
import { commandReference, COMMANDS_PAGE } from "./command-docs.ts";
import { KEYS_PAGE, keyReference } from "./key-docs.ts";

export const PAGE = join(import.meta.dirname, "..", "docs", "api-reference.md");

const HEAD = `# API reference

Made from \`GET /openapi.json\` by \`npm run docs\`; a test fails where this page is older than the routes. How requests are read, who may call and what streams do stands in [api.md](api.md).

Every operation may also answer with 400 (body or query), 401, 403, 404, 405, 413: \`{"message": "…", "error": "…"}\` with the same text twice, and \`details\` where a body or query has the wrong shape. \`?\` marks what may be left out. Operations marked *own secret* are mounted only while users are managed, and not on a plain port that other machines reach. \`/dns-query\` stands for the path of \`external-doh-server\`.
`;

const SHAPES = `## Shapes

What several answers are made of. No answer has members that are not named.
`;

/** The page as it should be. */
export async function apiReference(): Promise<string> {
  const { app } = await apiApp(everyRoute(new MemoryControl(), new MemoryUsers()));
  const document = (await app.inject("/openapi.json")).json<ApiDocument>();
  const sections = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => section(method, path, operation)),
  );
  const shapes = Object.entries(document.components.schemas).map(
    ([name, schema]) => `### ${name}\n\n${shape(schema)}\n`,
  );
  return [HEAD, ...sections, SHAPES, ...shapes].join("\n");
}

function section(method: string, path: string, operation: Operation): string {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["Access", [access(operation)]],
    ["Path", parameters(operation, "path")],
    ["Query", parameters(operation, "query")],
    ["Body", body(operation)],
    ["Answers", answers(operation)],
  ];
  const lines = rows.flatMap(([title, items]) =>
    items.length === 0 ? [] : [`- ${title}: ${items.join("; ")}`],
  );
  return `## ${method.toUpperCase()} ${path}\n\n${operation.summary}.\n\n${lines.join("\n")}\n`;
}

function access({ security }: Operation): string {
  if (security.length === 0) return "open";
  const owner = security.some((scheme) => "own" in scheme) ? "own secret" : "secret";
  const scopes = security.flatMap((scheme) => scheme["token"] ?? []);
  return [owner, ...scopes.map((scope) => `a token with the scope \`${scope}\``)].join(", or ");
}

function parameters({ parameters: all }: Operation, place: "path" | "query"): readonly string[] {
  return all
    .filter((parameter) => parameter.in === place)
    .map(({ name, required, schema, description }) => {
      const note = description === undefined ? "" : ` (${description})`;
      return `\`${name}${required ? "" : "?"}\` ${shape(schema)}${note}`;
    });
}

function body({ requestBody }: Operation): readonly string[] {
  if (requestBody === undefined) return [];
  return Object.entries(requestBody.content).map(([type, { schema }]) => {
    const what = schema === undefined ? `\`${type}\`` : shape(schema);
    return `${what}. ${requestBody.description}`;
  });
}

function answers({ responses }: Operation): readonly string[] {
  return Object.entries(responses)
    .filter(([status]) => status !== "4XX")
    .map(([status, { description, content = {} }]) => {
      const [type] = Object.keys(content);
      if (type === undefined) return `${status} ${description}`;
      if (type !== "application/json") return `${status} ${description} (\`${type}\`)`;
      const schema = content[type]?.schema;
      const isError = Number(status) >= 400 || schema === undefined;
      return isError ? `${status} ${description}` : `${status} ${description}: ${shape(schema)}`;
    });
}

/** A schema in a few words. */
function shape(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return referred(schema.$ref);
  if (schema.anyOf !== undefined) return schema.anyOf.map(shape).join(" or ");
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(" or ");
  if ("const" in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.type === "array") return `list of ${shape(schema.items ?? {})}`;
  if (schema.type === "object") return objectShape(schema);
  const { type = "anything" } = schema;
  return `${Array.isArray(type) ? type.join(" or ") : String(type)}${bounds(schema)}`;
}

/** A schema of its own has a section below. */
function referred($ref: string): string {
  const name = $ref.slice($ref.lastIndexOf("/") + 1);
  return `[${name}](#${name.toLowerCase()})`;
}

function objectShape({ properties = {}, required = [], additionalProperties }: JsonSchema): string {
  const members = Object.entries(properties).map(
    ([name, member]) => `\`${name}${required.includes(name) ? "" : "?"}\` ${shape(member)}`,
  );
  if (members.length > 0) return `{ ${members.join(", ")} }`;
  return typeof additionalProperties === "object" ? `object of ${shape(additionalProperties)}` : "object";
}

function bounds({ minimum, maximum }: JsonSchema): string {
  const isOpen = (value: number | undefined): boolean =>
    value === undefined || Math.abs(value) >= Number.MAX_SAFE_INTEGER;
  if (isOpen(maximum)) return isOpen(minimum) ? "" : ` from ${minimum}`;
  return isOpen(minimum) ? ` to ${maximum}` : ` ${minimum}–${maximum}`;
}

if (import.meta.main) {
  writeFileSync(PAGE, await apiReference());
  writeFileSync(KEYS_PAGE, keyReference());
  writeFileSync(COMMANDS_PAGE, await commandReference());
}
