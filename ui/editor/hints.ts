/** What the JSON Schema of the configuration says about a place in it. */
import { ITEM, type Place } from "./place.ts";

/** The part of JSON Schema that the program's own has. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

export interface Hint {
  /** What is put in. */
  readonly text: string;
  readonly description: string;
}

/** More are not shown; typing on finds the rest. */
const MOST_HINTS = 200;

/** What can stand at the place and goes on with what was typed. */
export function hintsAt(schema: Schema, place: Place): readonly Hint[] {
  const { path, key, typed, type } = place;
  const maps = ofType(partsAt(schema, path), type);
  const wanted = typed.replace(/^["']/, "").toLowerCase();
  const all =
    key === null
      ? [...keysOf(maps), ...maps.flatMap(valuesOf)]
      : maps.flatMap((map) => next(map, key)).flatMap(valuesOf);
  const unique = new Map(all.map((hint) => [hint.text, hint]));
  return [...unique.values()]
    .filter(({ text }) => text.toLowerCase().startsWith(wanted))
    .slice(0, MOST_HINTS);
}

/** About the key at the place: what it means, and its default. Null: it is not known. */
export function aboutKey(schema: Schema, { path, key, type }: Place): Schema | null {
  if (key === null) return null;
  const found = ofType(partsAt(schema, path), type).flatMap((map) => next(map, key));
  return found.find(({ description }) => description !== undefined) ?? found[0] ?? null;
}

function partsAt(schema: Schema, path: readonly string[]): readonly Schema[] {
  return path.reduce<readonly Schema[]>(
    (parts, key) => parts.flatMap((part) => next(part, key)),
    alternatives(schema),
  );
}

function next({ items, properties, additionalProperties }: Schema, key: string): readonly Schema[] {
  if (key === ITEM) return items === undefined ? [] : alternatives(items);
  const own = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined;
  const found = own ?? additionalProperties;
  return typeof found === "object" ? alternatives(found) : [];
}

const alternatives = (schema: Schema): readonly Schema[] =>
  schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(alternatives);

/** Those whose `type` is the one that the map has; all where none is. */
function ofType(parts: readonly Schema[], type: string | null): readonly Schema[] {
  if (type === null) return parts;
  const same = parts.filter(({ properties }) => {
    const says = properties?.["type"];
    return says !== undefined && [says.const, ...(says.enum ?? [])].includes(type);
  });
  return same.length === 0 ? parts : same;
}

function keysOf(maps: readonly Schema[]): readonly Hint[] {
  return maps
    .flatMap(({ properties = {} }) => Object.entries(properties))
    .map(([key, { description = "" }]) => ({ text: `${key}: `, description }));
}

function valuesOf(schema: Schema): readonly Hint[] {
  const { type = [], description = "" } = schema;
  const listed = schema.const === undefined ? (schema.enum ?? []) : [schema.const];
  const isSwitch = listed.length === 0 && [type].flat()[0] === "boolean";
  const values = listed.length > 0 ? listed : isSwitch ? [true, false] : (schema.examples ?? []);
  return values
    .filter((value) => ["string", "number", "boolean"].includes(typeof value))
    .map((value) => ({ text: String(value), description }));
}
