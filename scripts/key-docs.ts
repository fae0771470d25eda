/** The reference of keys, docs/keys.md, from the JSON Schema of the file. `npm run docs` writes it. */
import { join } from "node:path";
import type { JSONSchema } from "zod/v4/core";
import { REGISTRIES } from "#cli/parse-env.ts";
import { configSchema } from "#config/schema.ts";

type Schema = JSONSchema.BaseSchema;

export const KEYS_PAGE = join(import.meta.dirname, "..", "docs", "keys.md");

const HEAD = `# Every key

Made from \`weir schema\` by \`npm run docs\`; a test fails where this page is older than the definitions. What the keys do together stands in [configuration.md](configuration.md) and on the page of each subject; editors that are given the schema show the same texts.

A dot leads into a map, \`*\` stands for a name of your own, and a list may be written as a single value where it has one. Keys without a default may be left out, but for those that are *required*.
`;

/** Sections whose items are told apart by \`type\`: the table then says which types have a key. */
const TYPED = new Set(["proxies", "listeners", "proxy-groups"]);

interface Row {
  readonly key: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly types: Set<string>;
}

/** The page as it should be. */
export function keyReference(): string {
  const root: Schema = configSchema(REGISTRIES);
  const sections = Object.entries(root.properties ?? {}).flatMap(([key, schema]) =>
    isSchema(schema) ? [{ key, schema }] : [],
  );
  const plain = sections.filter(({ schema }) => rowsOf(schema).length === 0);
  const general = table(plain.map(({ key, schema }) => row(key, schema, false)));
  const rest = sections.filter((section) => !plain.includes(section));
  return [HEAD, `## General\n\n${general}`, ...rest.map(section)].join("\n");
}

function section({ key, schema }: { key: string; schema: Schema }): string {
  const rows = rowsOf(schema);
  const text = schema.description === undefined ? "" : `${schema.description}\n\n`;
  return `## ${key}\n\n${text}${table(rows, TYPED.has(key) ? typesOf(rows) : null)}`;
}

function typesOf(rows: readonly Row[]): number {
  return new Set(rows.flatMap(({ types }) => [...types])).size;
}

/** Every key below, once for each path and meaning; branches of a union that mean the same are one. */
function rowsOf(schema: Schema): readonly Row[] {
  const rows = new Map<string, Row>();
  walk(schema, [], "");
  return [...rows.values()];

  function walk(part: Schema, path: readonly string[], above: string): void {
    const type = isSchema(part.properties?.["type"]) ? part.properties["type"].const : undefined;
    const types = typeof type === "string" ? type : above;
    for (const [key, property] of Object.entries(part.properties ?? {})) {
      if (!isSchema(property)) continue;
      const name = [...path, key].join(".");
      const meaning = `${name} ${property.description ?? ""}`;
      const found = rows.get(meaning) ?? row(name, property, part.required?.includes(key) ?? false);
      if (types !== "") found.types.add(types);
      rows.set(meaning, found);
      walk(property, [...path, key], types);
    }
    for (const item of [part.items, ...(part.anyOf ?? [])]) if (isSchema(item)) walk(item, path, types);
    if (isSchema(part.additionalProperties)) walk(part.additionalProperties, [...path, "*"], types);
  }
}

const row = (key: string, schema: Schema, isRequired: boolean): Row => ({
  key,
  schema,
  isRequired,
  types: new Set(),
});

/** `types`: how many types the section has; null: its items have none. */
function table(rows: readonly Row[], types: number | null = null): string {
  const head = types === null ? ["Key"] : ["Key", "Types"];
  const columns = [...head, "Value", "Default", "Meaning"];
  const lines = rows.map(({ key, schema, isRequired, types: of }) => {
    // Of a few words every one is an example.
    const [example] = schema.enum === undefined ? (schema.examples ?? []) : [];
    const meaning = `${schema.description ?? ""}${example === undefined ? "" : ` Example: ${code(example)}`}`;
    const standard = isRequired ? "*required*" : schema.default === undefined ? "" : code(schema.default);
    const which = types === null ? [] : [of.size === types ? "all" : [...of].join(", ")];
    return [`\`${key}\``, ...which, valueOf(objectOf(schema)), standard, meaning];
  });
  return `${[columns, columns.map(() => "---"), ...lines].map(line).join("\n")}\n`;
}

const line = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;

const code = (value: unknown): string =>
  `\`${typeof value === "string" && value !== "" ? value : JSON.stringify(value)}\``;

/** Where a single value may stand for a list, the list. */
function objectOf(schema: Schema): Schema {
  const list = (schema.anyOf ?? []).filter(isSchema).find(({ type }) => type === "array");
  return list === undefined
    ? schema
    : { ...list, ...(schema.description && { description: schema.description }) };
}

/** What the value is, in a few words. */
function valueOf(schema: Schema): string {
  const { enum: words, minimum, maximum, items } = schema;
  if (words !== undefined) return words.map((word) => code(word)).join(", ");
  if (schema.const !== undefined) return "one of them";
  const [type = "any"] = [schema.type ?? []].flat();
  if (type === "array") return isSchema(items) ? `list of ${plural(valueOf(objectOf(items)))}` : "list";
  if (type === "boolean") return "yes or no";
  if (type === "object") return "map";
  if (type !== "integer")
    return schema.format === "password" ? "secret text" : type === "string" ? "text" : type;
  const isBounded = maximum !== undefined && Math.abs(maximum) < Number.MAX_SAFE_INTEGER;
  return isBounded && minimum !== undefined ? `${minimum} to ${maximum}` : "number";
}

const plural = (value: string): string => (value === "text" ? "texts" : value === "map" ? "maps" : value);

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
