/** Reads of JSON that others have written: a member of another kind is as if it were missing. */
import { ConfigError } from "#core/errors.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Empty for anything but an object. */
export function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** Empty for anything but a list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Objects of a list, each with its place in it. */
export function objectsOf(value: unknown): readonly (readonly [at: number, item: Json])[] {
  return listOf(value).map((item, at) => [at, objectOf(item)]);
}

/** Texts of a list; a single text counts as a list of one. */
export function textsOf(value: unknown): readonly string[] {
  const items = typeof value === "string" ? [value] : listOf(value);
  return items.filter((item) => typeof item === "string");
}

/** Numbers as their digits; "" for what is neither text nor number. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" ? `${value}` : "";
}

/** 0 for what is no whole number that a double holds exactly. */
export function wholeOf(value: unknown): number {
  const number = typeof value === "bigint" || typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) ? number : 0;
}

/** 0 for what is negative, too. */
export function countOf(value: unknown): number {
  return Math.max(0, wholeOf(value));
}

/** Texts, so that what looks like a comment in them stays, and comments as Xray takes them. */
const TEXT_OR_COMMENT = /"(?:[^"\\]|\\.)*"?|\/\/[^\n]*|#[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?/gs;

/** An object, with comments or without. Throws `ConfigError`, which never shows the text: it holds credentials. */
export function parseObject(text: string, where: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text.replaceAll(TEXT_OR_COMMENT, (found) => (found.startsWith('"') ? found : " ")));
  } catch {
    throw new ConfigError(`${where}: it is no JSON`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new ConfigError(`${where}: expected a JSON object`);
}
