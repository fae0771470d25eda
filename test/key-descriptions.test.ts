/** What editors show while a file is written: each key's meaning, its default, and an example that would be right. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JSONSchema } from "zod/v4/core";
import { REGISTRIES } from "#cli/parse-env.ts";
import { DESCRIPTIONS } from "#config/descriptions/index.ts";
import { configSchema } from "#config/schema.ts";

interface Property {
  readonly path: string;
  readonly schema: JSONSchema.BaseSchema;
}

/** Every property of every object in the schema. */
function* properties(part: unknown, path: string): Generator<Property> {
  if (typeof part !== "object" || part === null) return;
  const { properties: own = {}, items, additionalProperties, anyOf = [] } = part as JSONSchema.BaseSchema;
  for (const [key, property] of Object.entries(own)) {
    if (typeof property !== "object") continue;
    yield { path: `${path}.${key}`, schema: property };
    yield* properties(property, `${path}.${key}`);
  }
  for (const below of [items, additionalProperties, ...anyOf]) yield* properties(below, path);
}

const every = [...properties(configSchema(REGISTRIES), "")];

test("every key says what it means", () => {
  assert.ok(every.length > 1500, String(every.length));
  const silent = every.filter(({ schema: { description = "" } }) => !/^[A-Z`].{8,}[.:]$/su.test(description));
  assert.deepEqual([...new Set(silent.map(({ path }) => path))], []);
});

test("every example and every default is a value of its key", () => {
  const cases = new Map<string, { path: string; schema: JSONSchema.BaseSchema; value: unknown }>();
  for (const { path, schema } of every)
    for (const value of [...(schema.examples ?? []), ...("default" in schema ? [schema.default] : [])])
      cases.set(JSON.stringify([schema, value]), { path, schema, value });
  assert.ok(cases.size > 400, String(cases.size));
  const all = [...cases.values()];
  const check = new Ajv2020({
    strict: false,
    validateFormats: false,
    allowUnionTypes: true,
    allErrors: true,
  });
  const validate = check.compile({
    type: "array",
    prefixItems: all.map(({ schema }) => schema),
  });
  validate(all.map(({ value }) => value));
  const wrong = (validate.errors ?? []).map(({ instancePath, message }) => {
    const { path, value } = all[Number(instancePath.split("/")[1])] ?? {};
    return `${path}: ${JSON.stringify(value)} ${message}`;
  });
  assert.deepEqual(wrong, []);
});

test("every description stands for a key of the file", () => {
  const told = new Set(every.map(({ schema: { description } }) => description));
  const own = REGISTRIES.protocols.map(({ descriptions = {} }) => descriptions);
  for (const descriptions of [...DESCRIPTIONS, ...own])
    for (const [name, described] of Object.entries(descriptions))
      assert.ok(told.has(typeof described === "string" ? described : described[0]), name);
  const names = DESCRIPTIONS.flatMap((descriptions) => Object.keys(descriptions));
  assert.equal(new Set(names).size, names.length);
});
