/** Shapes of queries and bodies, after the manners of the ecosystem: keys in any case, null is absent, unknown keys are ignored. */
import { isIP } from "node:net";
import * as z from "zod";

/** A JSON object. Keys match in any case, the exact spelling wins; null means absent; unknown keys are dropped. */
export function jsonObject<Shape extends z.ZodRawShape>(shape: Shape) {
  const spelling = new Map(Object.keys(shape).map((key) => [key.toLowerCase(), key]));
  return z.preprocess((value) => fold(value, spelling), z.object(shape));
}

function fold(value: unknown, spelling: ReadonlyMap<string, string>): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const folded = new Map<string, unknown>();
  for (const [key, member] of Object.entries(value)) {
    const known = spelling.get(key.toLowerCase());
    if (known === undefined || member === null) continue;
    if (known === key || !folded.has(known)) folded.set(known, member);
  }
  return Object.fromEntries(folded);
}

/** A query string; of a repeated key the first value counts. */
export function queryOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.preprocess(firstValues, z.object(shape));
}

function firstValues(query: unknown): unknown {
  if (typeof query !== "object" || query === null) return query;
  const values: [string, unknown][] = Object.entries(query);
  return Object.fromEntries(values.map(([key, value]) => [key, Array.isArray(value) ? value[0] : value]));
}

/** A whole number written in decimal. */
export const queryInt = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^-?[0-9]{1,16}$/, "expected a whole number")
    .transform(Number)
    .refine(
      (value) => value >= minimum && value <= maximum,
      `expected a number from ${minimum} to ${maximum}`,
    );

/** One of a few words, in any case. */
export const word = <const T extends string>(words: readonly [T, ...T[]]) =>
  z
    .string()
    .transform((text, context) => {
      const found = words.find((candidate) => candidate.toLowerCase() === text.toLowerCase());
      if (found !== undefined) return found;
      const message = `expected one of ${words.join(", ")}`;
      context.issues.push({ code: "custom", message, input: text });
      return z.NEVER;
    })
    .meta({ enum: [...words] });

export const port = () => z.int().min(0).max(65_535);

/** `192.0.2.0/24`, `2001:db8::/32` or a bare address. */
export const cidr = () => z.string().refine(isCidr, "expected an address or address/bits");

function isCidr(text: string): boolean {
  const slash = text.indexOf("/");
  const family = isIP(slash < 0 ? text : text.slice(0, slash));
  if (family === 0 || slash < 0) return family !== 0;
  const bits = text.slice(slash + 1);
  return /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

/** `200`, `200-299`, several joined by `/` or `,`; "" and `*` mean every status (configuration.md §15.4). */
export const statusRanges = () =>
  z.string().transform((text, context) => {
    const clean = text.replaceAll(/\s/g, "");
    if (clean === "" || clean === "*") return null;
    const ranges = clean.split(/[/,]/).map((item) => /^([0-9]{1,5})(?:-([0-9]{1,5}))?$/.exec(item));
    if (ranges.every((range) => range !== null)) {
      return ranges.map(([, from, to]) => [Number(from), Number(to ?? from)] as const);
    }
    context.issues.push({ code: "custom", message: "expected statuses such as 200 or 200-299", input: text });
    return z.NEVER;
  });
