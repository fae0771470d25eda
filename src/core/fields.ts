/**
 * The vocabulary of configuration values. One definition gives the check, the TypeScript type, the JSON Schema and the
 * error text. Values come from YAML, where an unquoted scalar keeps its source text (`Plain`), or from JSON.
 */
import { z } from "zod";

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

/** How a faulty value is shown in a message: short, one line. */
export function show(value: unknown): string {
  const text =
    value instanceof Plain ? value.source : typeof value === "string" ? JSON.stringify(value) : kindOf(value);
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
      const missing = value === undefined;
      context.issues.push({ code: "custom", message: result.message, input: value, params: { missing } });
      return z.NEVER;
    })
    .meta(json);
}

function sourceOf(value: unknown): string | null {
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

/** One of a few words. `fold` accepts any case and answers in the listed spelling. */
export const choice = <const T extends string>(words: readonly T[], { fold = false } = {}) =>
  scalar({ type: "string", enum: [...words] }, (source, raw) => {
    const wanted = fold ? source.toLowerCase() : source;
    const found = words.find((word) => (fold ? word.toLowerCase() : word) === wanted);
    return found ?? new Fault(`expected one of ${words.join(", ")}, got ${show(raw)}`);
  });

/** A list; a single value stands for a list of one, as the ecosystem's decoders have it. */
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

/** The fields that every node with a server has. */
export const serverFields = { server: name(), port: int(1, 65535) };
