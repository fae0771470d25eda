/**
 * The vocabulary of configuration values. One definition gives the check, the TypeScript type, the JSON Schema and the
 * error text. Values come from YAML, where an unquoted scalar keeps its source text (`Plain`), or from JSON.
 */
import * as z from "zod";
import { messageOf } from "./errors.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { compilePattern } from "#lib/wildcard-pattern.ts";
import { itemAt } from "#lib/at.ts";

/** An unquoted YAML scalar; `source` is what the user typed, so `secret: 0123` stays the text 0123. */
export class Plain {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

type Raw = Plain | string | number | boolean | undefined;

/** What a reader answers instead of a value: a sentence that says what would be right. */
export class Fault {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

/**
 * A value that other programs start with and that cannot be used here. It costs the item that has it, never the file: the
 * node or the listener becomes inert and says why, a key of a section is left out with a warning.
 */
export class Unsupported extends Fault {}

/** How a faulty value is shown in a message: short, one line. */
export function show(value: unknown): string {
  const text =
    value instanceof Plain
      ? value.source || "nothing"
      : typeof value === "string"
        ? JSON.stringify(value)
        : kindOf(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a map";
  return String(value);
}

/** A custom scalar type. `read` gets the source text and whether it was quoted; it answers with a value or a Fault. */
export function scalar<T>(json: Record<string, unknown>, read: (source: string, raw: Raw) => T | Fault) {
  return z
    .transform((value: unknown, context): T => {
      const source = sourceOf(value);
      const result =
        value === undefined
          ? new Fault("is required")
          : source === null
            ? new Fault(`expected a single value, got ${show(value)}`)
            : read(source, value as Raw);
      if (!(result instanceof Fault)) return result;
      const params = { missing: value === undefined, unsupported: result instanceof Unsupported };
      context.issues.push({ code: "custom", message: result.message, input: value, params });
      return z.NEVER;
    })
    .meta(json);
}

/** The text of a single value; null for anything else. */
export function sourceOf(value: unknown): string | null {
  if (value instanceof Plain) return value.source;
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

export const text = () => scalar({ type: "string" }, (source) => source);

/** Text that must not be empty. */
export const name = () =>
  scalar({ type: "string", minLength: 1 }, (source) =>
    source === "" ? new Fault("must not be empty") : source,
  );

/** Linux has room for so many in a name (IFNAMSIZ without the closing zero), and would cut a longer one. */
export const MOST_INTERFACE_NAME_BYTES = 15;

/** Why no interface has this name; null: one may have it. Empty names none. */
export function interfaceNameFault(name: string): string | null {
  return Buffer.byteLength(name) <= MOST_INTERFACE_NAME_BYTES
    ? null
    : `expected an interface, whose name has at most ${MOST_INTERFACE_NAME_BYTES} bytes, got ${show(name)}`;
}

/** Text that holds a secret: never shown in messages, marked in the JSON Schema. */
export const secret = () => scalar({ type: "string", format: "password" }, (source) => source);

/** PEM text, or the path of a file that holds it (`SafeFiles` reads it; the configuration checks that the path is safe). */
export const pem = () => scalar({ type: "string", "x-weir-file": true }, (source) => source);

const INTEGER = /^[+-]?(0x[0-9a-f]+|0o[0-7]+|0b[01]+|[0-9]+)$/i;

/** Decimal, 0x, 0o, 0b, leading-zero octal, `_` separators. Null where it is no integer. */
export function parseInteger(source: string): number | null {
  const digits = source.trim().replaceAll("_", "");
  if (!INTEGER.test(digits)) return null;
  const negative = digits.startsWith("-");
  const body = digits.replace(/^[+-]/, "");
  const value = /^0[0-7]+$/.test(body) ? Number.parseInt(body, 8) : Number(body);
  return Number.isSafeInteger(value) ? (negative ? -value : value) : null;
}

export const int = (minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER) =>
  scalar(
    {
      type: "integer",
      ...(minimum > Number.MIN_SAFE_INTEGER ? { minimum } : {}),
      ...(maximum < Number.MAX_SAFE_INTEGER ? { maximum } : {}),
    },
    (source, raw) => {
      const value = parseInteger(source);
      if (value === null) return new Fault(`expected an integer, got ${show(raw)}`);
      if (value >= minimum && value <= maximum) return value;
      return new Fault(`expected an integer from ${minimum} to ${maximum}, got ${value}`);
    },
  );

export const port = () => int(0, 65535);

const TRUE = new Set(["true", "yes", "on", "y"]);
const FALSE = new Set(["false", "no", "off", "n"]);

/** true/false, yes/no, on/off; integers as in the ecosystem (non-zero is true); a quoted string is no boolean. */
export const flag = () =>
  scalar({ type: "boolean" }, (source, raw) => {
    const word = source.toLowerCase();
    if (typeof raw !== "string") {
      if (TRUE.has(word)) return true;
      if (FALSE.has(word)) return false;
      const number = parseInteger(source);
      if (number !== null) return number !== 0;
    }
    return new Fault(`expected true or false, got ${show(raw)}`);
  });

/** The value of `inner`; a wrong one costs its key, or its item of a list, and not the file. */
export const leftOut = <S extends z.ZodType>(inner: S) =>
  z
    .transform((value: unknown, context): z.output<S> => {
      const result = inner.safeParse(value, { reportInput: true });
      if (result.success) return result.data;
      const params = { missing: value === undefined, unsupported: true };
      for (const { message } of result.error.issues)
        context.issues.push({ code: "custom", message, input: value, params });
      return z.NEVER;
    })
    .meta(inner.meta() ?? {});

/** `fallback` for empty text and 0, too: other programs cannot tell these from a key that is not there. */
export const unsetAs = <S extends z.ZodType, const T>(inner: S, fallback: T) =>
  z
    .transform((value: unknown, context): z.output<S> | T => {
      if (["", "0"].includes(sourceOf(value)?.trim() ?? "-")) return fallback;
      const result = inner.safeParse(value, { reportInput: true });
      if (result.success) return result.data;
      for (const { message, ...issue } of result.error.issues)
        context.issues.push({ ...issue, code: "custom", message, input: value });
      return z.NEVER;
    })
    .meta(inner.meta() ?? {});

/** A port to listen on; one that there is not is left out. */
export const listenPort = () =>
  scalar({ type: "integer", minimum: 0, maximum: 65_535 }, (source, raw) => {
    const value = parseInteger(source);
    if (value === null) return new Fault(`expected an integer, got ${show(raw)}`);
    if (value >= 0 && value <= 65_535) return value;
    return new Unsupported(`expected an integer from 0 to 65535, got ${value}`);
  });

/** One of a few words. `fold` accepts any case and answers in the listed spelling. */
export const choice = <const T extends string>(words: readonly T[], { fold = false } = {}) =>
  scalar({ type: "string", enum: [...words] }, (source, raw) => {
    const wanted = fold ? source.toLowerCase() : source;
    const found = words.find((word) => (fold ? word.toLowerCase() : word) === wanted);
    if (found !== undefined) return found;
    return noneOf(words, source, raw);
  });

/** What to say of a word that is none of `words`. */
export function noneOf(words: readonly string[], source: string, raw: unknown): Fault {
  const known = words.map((word) => word || '""').join(", ");
  return new Fault(`expected one of ${known}, got ${show(raw)}${suggestion(source, words)}`);
}

/** A path inside the home directory or a safe path; the configuration checks that it is. */
export const filePath = () => scalar({ type: "string", "x-weir-file": true }, (source) => source);

/** What is wrong with an absolute http or https URL; null: nothing. */
export function httpUrlFault(source: string): Fault | null {
  const url = URL.parse(source);
  if (url !== null && /^https?:$/.test(url.protocol) && url.hostname !== "") return null;
  const scheme = itemAt(source.split(/[:/?#]/, 1), 0); // what follows may hold a subscription's token
  return new Fault(
    `expected a URL beginning with http:// or https://, got one beginning with ${show(scheme)}`,
  );
}

/** An absolute http or https URL, as it was written. */
export const httpUrl = () =>
  scalar({ type: "string", format: "uri" }, (source) => httpUrlFault(source) ?? source);

/** A URL that may be none: its reader asks `httpUrlFault` and does without it. */
export const anyUrl = () => scalar({ type: "string", format: "uri" }, (source) => source);

/** A regular expression in the spelling of `compilePattern`, as text. */
export const pattern = () =>
  scalar({ type: "string", format: "regex" }, (source) => {
    try {
      compilePattern(source);
      return source;
    } catch (error) {
      return new Fault(`not a regular expression: ${messageOf(error)}`);
    }
  });

/** The value, or null where it is absent. */
export const maybe = <T extends z.ZodType>(item: T) => item.optional().transform((value) => value ?? null);

type Camel<S extends string> = S extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S;
type CamelKeys<T> = { [K in keyof T as K extends string ? Camel<K> : K]: T[K] };

/** `fake-ip-range6` → `fakeIpRange6`. */
export function camelCase(key: string): string {
  return key.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** A map of known keys, hyphenated in files, camelCase in the program. */
export const block = <S extends z.ZodRawShape>(shape: S) =>
  z.object(shape).transform((value) => {
    const entries = Object.entries(value).map(([key, item]) => [camelCase(key), item]);
    return Object.fromEntries(entries) as CamelKeys<z.output<z.ZodObject<S>>>;
  });

/** A list; a single value is a list of one, as the ecosystem's decoders have it. */
export const list = <T extends z.ZodType>(item: T) =>
  z.preprocess(
    (value) => (value === undefined || Array.isArray(value) ? value : [value]),
    z.array(item, { error: (issue) => (issue.input === undefined ? "is required" : "expected a list") }),
  );

/** A map of free keys. */
export const mapOf = <T extends z.ZodType>(item: T) =>
  z.record(z.string(), item, {
    error: (issue) => (issue.input === undefined ? "is required" : "expected a map"),
  });
