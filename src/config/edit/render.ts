/** Values as YAML: one scalar a line, quoted where a reader of YAML 1.1 or 1.2 could take it for something else. */
import type { JsonValue } from "#core/control.ts";

/** Numbers, dates and times of either version, and some words more. */
const LIKE_NUMBER = /^[-+.]?\d[\d_:exob+a-f-]*(?:\.[\d_e+-]*)?$|^\d{4}-\d\d?-\d\d?/i;
const WORDS = /^(?:|~|null|true|false|yes|no|on|off|y|n|=|<<|[-+]?\.inf|\.nan|---.*|\.\.\..*)$/i;
/** An indicator in front, blanks at an end, a comment or a key inside, or what is hard to see (YAML 1.2 §5.3, §7.3.3). */
const NOT_PLAIN = /^[-?:,[\]{}#&*!|>'"%@`]|^\s|\s$|:(?:\s|$)|\s#|[\p{Cc}\p{Cs}\u2028\u2029\ufeff]/u;
const FLOW_SIGNS = /[,[\]{}]/;
const INDENT = "  ";

/** In one line, as it stands between brackets. */
export function flowText(value: JsonValue): string {
  if (isList(value)) return `[${value.map(flowText).join(", ")}]`;
  if (!isMap(value)) return scalarText(value, true);
  return `{${Object.entries(value)
    .map(([key, member]) => flowPair(key, member))
    .join(", ")}}`;
}

/** `key: value` in one line, as it stands between braces. */
export function flowPair(key: string, value: JsonValue): string {
  return `${scalarText(key, true)}: ${flowText(value)}`;
}

/** A list item, the first line with its dash. */
export function itemLines(value: JsonValue): readonly string[] {
  const [first = "", ...others] = blockLines(value) ?? [scalarText(value, false)];
  return [`- ${first}`, ...others.map((line) => INDENT + line)];
}

export function pairLines(key: string, value: JsonValue): readonly string[] {
  const name = scalarText(key, false);
  const lines = blockLines(value);
  if (lines === null) return [`${name}: ${scalarText(value, false)}`];
  return [`${name}:`, ...lines.map((line) => INDENT + line)];
}

/** Of a map or list that is not empty; null: the value stands in the line of its key. */
export function blockLines(value: JsonValue): readonly string[] | null {
  if (isList(value)) return value.length === 0 ? null : value.flatMap(itemLines);
  if (!isMap(value)) return null;
  const entries = Object.entries(value);
  return entries.length === 0 ? null : entries.flatMap(([key, member]) => pairLines(key, member));
}

/** Of a scalar or an empty map or list. */
export function scalarText(value: JsonValue, inFlow: boolean): string {
  if (isList(value)) return "[]";
  if (isMap(value)) return "{}";
  if (typeof value !== "string") return String(value);
  const isPlain = !LIKE_NUMBER.test(value) && !WORDS.test(value) && !NOT_PLAIN.test(value);
  return isPlain && !(inFlow && FLOW_SIGNS.test(value)) ? value : JSON.stringify(value); // JSON is YAML
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

export function isMap(value: JsonValue): value is { readonly [key: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
