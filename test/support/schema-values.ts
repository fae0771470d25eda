/** Values for a JSON Schema of the API's document: what it asks for, nearly that, and anything. */
import fc from "fast-check";
import type { JsonSchema } from "./api-document.ts";

/** Texts that decoders trip over. */
const ODD_TEXTS = [
  "",
  " ",
  "0",
  "-1",
  "1e9",
  "null",
  "__proto__",
  "constructor",
  "\0",
  "a/b",
  "%",
  "🇩🇪",
  "\ud800",
];

export const anyText: fc.Arbitrary<string> = fc.oneof(fc.constantFrom(...ODD_TEXTS), fc.string());

export function valid(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valid));
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type) => valid({ ...schema, type })));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
  switch (schema.type) {
    case "string":
      return anyText;
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "integer":
      return fc.integer({
        min: Math.max(schema.minimum ?? 0, -1e9),
        max: Math.min(schema.maximum ?? 1e9, 1e9),
      });
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case "array":
      return fc.array(valid(schema.items ?? {}), { maxLength: 3 });
    case "object":
      return object(schema);
    default:
      return fc.jsonValue();
  }
}

function object({ properties = {}, required = [], additionalProperties }: JsonSchema): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, valid(schema)]),
  );
  const named = fc.record(members, { requiredKeys: [...required] });
  if (typeof additionalProperties !== "object") return named;
  const key = fc.oneof(fc.constantFrom("0", "1"), anyText);
  return fc.dictionary(key, valid(additionalProperties), { maxKeys: 3 });
}

/** A valid value with one member of another kind, missing, or in another case. */
export function nearly(schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc
    .tuple(valid(schema), fc.nat(), fc.jsonValue(), fc.constantFrom("swap", "drop", "upper"))
    .map(damage);
}

function damage([value, at, other, how]: [unknown, number, unknown, string]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return other;
  const members = Object.entries(value);
  const [key, member] = members[at % Math.max(1, members.length)] ?? ["x", other];
  const rest = Object.fromEntries(members.filter(([name]) => name !== key));
  if (how === "drop") return rest;
  return how === "upper" ? { ...rest, [key.toUpperCase()]: member } : { ...rest, [key]: other };
}
