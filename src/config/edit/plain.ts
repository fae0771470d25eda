/** What an edit says, done to the values of the file: the text with the edit has to be read as exactly this. */
import type { JsonValue } from "#core/control.ts";
import { Plain, sourceOf } from "#core/fields.ts";

/** A value of the file as `readYaml` gives it, or of an edit. Words are equal quoted or not; null, absence and nothing written are. */
export function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, at) => isSame(item, right[at]));
  }
  if (isMembers(left) || isMembers(right)) {
    if (!isMembers(left) || !isMembers(right)) return false;
    return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((key) =>
      isSame(left[key], right[key]),
    );
  }
  return wordOf(left) === wordOf(right);
}

function wordOf(value: unknown): string | null {
  const text = sourceOf(value);
  return value instanceof Plain && text === "" ? null : text;
}

function isMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !(value instanceof Plain) && !Array.isArray(value);
}

export type Change =
  | { readonly kind: "insert"; readonly value: JsonValue }
  | { readonly kind: "set"; readonly value: JsonValue }
  | { readonly kind: "remove" };

/** A copy with the change; `path` ends with the index or the key that it is about, and leads through what is there. */
export function changed(root: unknown, path: readonly (string | number)[], change: Change): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return change.kind === "remove" ? undefined : change.value;
  if (Array.isArray(root)) {
    const at = Number(step);
    if (rest.length > 0) return root.with(at, changed(root[at], rest, change));
    if (change.kind === "set") return root.with(at, change.value);
    return root.toSpliced(
      at,
      change.kind === "remove" ? 1 : 0,
      ...(change.kind === "remove" ? [] : [change.value]),
    );
  }
  const members = isMembers(root) ? root : {};
  return { ...members, [step]: changed(members[step], rest, change) };
}

/** The value under a path; undefined where there is none. */
export function plainAt(root: unknown, path: readonly (string | number)[]): unknown {
  let value = root;
  for (const step of path) {
    if (Array.isArray(value)) value = value[Number(step)];
    else value = isMembers(value) ? value[step] : undefined;
  }
  return value;
}

/** `value` under these keys. */
export function nested(keys: readonly string[], value: JsonValue): JsonValue {
  return keys.reduceRight<JsonValue>((inner, key) => ({ [key]: inner }), value);
}
