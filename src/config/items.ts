/** What the lists of typed items (proxies, listeners, groups) have in common. */
import { Plain, show } from "#core/fields.ts";
import * as z from "zod";
import { parseSafely, without, type Context, type Issue } from "./context.ts";
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
    const text = `${prefix}: ${issueText({ path: inner, message })}`;
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

/** An item that was read. */
export interface ReadItem<Common extends z.ZodObject> {
  readonly common: z.output<Common>;
  /** Empty where `unsupported` is not. */
  readonly options: object;
  /** What of it this build does not do; empty: nothing. */
  readonly unsupported: readonly Issue[];
}

/** What both schemas make of an item, or null with everything reported that is wrong. */
export function readBoth<Common extends z.ZodObject>(
  context: Context,
  common: Common,
  own: z.ZodObject,
  item: unknown,
  path: Path,
  prefix: string,
): ReadItem<Common> | null {
  const left = parseSafely(common, item);
  const right = parseSafely(own, item);
  if (left.issues === null && right.issues === null)
    return { common: left.data as z.output<Common>, options: right.data as object, unsupported: [] };
  const issues = [...(left.issues ?? []), ...(right.issues ?? [])].map((issue) =>
    withEmpty(context, issue, path),
  );
  const wrong = issues.filter((issue) => !issue.unsupported);
  if (wrong.length === 0) {
    const usable = parseSafely(common, without(item, issues.map(pathOf)));
    if (usable.issues === null)
      return { common: usable.data as z.output<Common>, options: {}, unsupported: issues };
  }
  reportIssues(context, wrong.length > 0 ? wrong : issues, path, prefix);
  return null;
}

const pathOf = ({ path }: Issue): Path => path;

/** A key without a value is not missing: other programs take it for empty and start. */
function withEmpty(context: Context, issue: Issue, path: Path): Issue {
  const key = issue.path.at(-1);
  if (!issue.missing || typeof key !== "string") return issue;
  if (!context.emptyKeys([...path, ...issue.path.slice(0, -1)]).includes(key)) return issue;
  return { ...issue, missing: false, unsupported: true, message: "is empty" };
}

/** `'plugin' shadow-tls is not in this build`; the key is left out where the item itself is meant. */
export function issueText({ path, message }: Pick<Issue, "path" | "message">): string {
  return path.length === 0 ? message : `'${path.join(".")}' ${message}`;
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
