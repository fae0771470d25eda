/** What the lists of typed items (proxies, listeners, groups) have in common. */
import { Plain, show } from "#core/fields.ts";
import { z } from "zod";
import { parseSafely, type Context, type Issue } from "./context.ts";
import type { Path } from "./report.ts";
import { fold, isMapValue, type KeyMatch } from "./shape.ts";

/** The text of one field of an item whose schema is not known yet; null where it is absent or no text. */
export function peek(item: unknown, key: string, match: KeyMatch): string | null {
  if (!isMapValue(item)) return null;
  let value = item[key];
  if (value === undefined) {
    const other = Object.keys(item).find((name) => fold(name, match) === key);
    value = other === undefined ? undefined : item[other];
  }
  if (value instanceof Plain) return value.source;
  return typeof value === "string" ? value : null;
}

/** One schema with the keys of both, to know which keys an item may have. */
export function joined(common: z.ZodObject, own: z.ZodObject): z.ZodObject {
  return z.object({ ...common.shape, ...own.shape });
}

/**
 * Reports the issues of one item as the ecosystem's tools know them: `'' has unset fields: a, b` for all that is missing
 * in one map, `'port' expected …` for a wrong value, each behind `prefix`.
 */
export function reportIssues(context: Context, issues: readonly Issue[], path: Path, prefix: string): void {
  const unset = new Map<string, { readonly path: Path; readonly keys: Set<string> }>();
  const said = new Set<string>();
  for (const { path: inner, message, missing } of issues) {
    const key = inner.at(-1);
    if (missing && typeof key === "string") {
      const parent = inner.slice(0, -1);
      const name = parent.join(".");
      const entry = unset.get(name) ?? { path: [...path, ...parent], keys: new Set<string>() };
      unset.set(name, entry);
      entry.keys.add(key);
      continue;
    }
    const text = `${prefix}: ${inner.length > 0 ? `'${inner.join(".")}' ` : ""}${message}`;
    if (said.has(text)) continue; // a key that both schemas read
    said.add(text);
    context.report.error([...path, ...inner], text);
  }
  for (const [name, { path: parent, keys }] of unset)
    context.report.error(
      parent,
      `${prefix}: '${name}' has unset fields: ${[...keys].sort().join(", ")}`,
      "key",
    );
}

/** What both schemas make of an item, or null with everything reported. */
export function readBoth<Common extends z.ZodObject>(
  context: Context,
  common: Common,
  own: z.ZodObject,
  item: unknown,
  path: Path,
  prefix: string,
): { readonly common: z.output<Common>; readonly options: object } | null {
  const left = parseSafely(common, item);
  const right = parseSafely(own, item);
  if (left.issues === null && right.issues === null)
    return { common: left.data as z.output<Common>, options: right.data as object };
  reportIssues(context, [...(left.issues ?? []), ...(right.issues ?? [])], path, prefix);
  return null;
}

/** True where the item is a map; otherwise it is reported. */
export function isItemMap(
  context: Context,
  item: unknown,
  path: Path,
  prefix: string,
): item is Readonly<Record<string, unknown>> {
  if (isMapValue(item)) return true;
  context.report.error(path, `${prefix}: expected a map, got ${show(item)}`);
  return false;
}
