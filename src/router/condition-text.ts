/** The bracket language of AND, OR, NOT and SUB-RULE: `((TYPE,payload),(TYPE,payload))`. */
import { ConfigError } from "#core/errors.ts";
import { itemAt } from "#lib/at.ts";

const DEPTH_LIMIT = 32;

/** The texts inside the brackets of each top-level item: `(A,b),(C,d)` gives `A,b` and `C,d`. Throws `ConfigError`. */
function splitItems(text: string): readonly string[] {
  const items: string[] = [];
  let depth = 0;
  let start = 0;
  let separated = true;
  for (let at = 0; at < text.length; at++) {
    const code = text.charAt(at);
    if (code === "(") {
      if (depth === 0 && !separated) throw new ConfigError(`a comma is missing before ${excerpt(text, at)}`);
      if (depth++ === 0) start = at + 1;
      if (depth > DEPTH_LIMIT) throw new ConfigError(`brackets nest deeper than ${DEPTH_LIMIT}`);
    } else if (code === ")") {
      if (--depth < 0) throw new ConfigError(`a bracket closes that never opened at ${excerpt(text, at)}`);
      if (depth === 0) items.push(text.slice(start, at).trim());
      separated = depth > 0;
    } else if (depth === 0 && code === ",") {
      if (separated) throw new ConfigError(`a condition is missing before ${excerpt(text, at)}`);
      separated = true;
    } else if (depth === 0 && code.trim() !== "")
      throw new ConfigError(`expected "(" at ${excerpt(text, at)}: write ((TYPE,payload),(TYPE,payload))`);
  }
  if (depth > 0)
    throw new ConfigError(`${depth} closing bracket${depth > 1 ? "s are" : " is"} missing at the end`);
  if (items.length > 0 && separated) throw new ConfigError("a condition is missing after the last comma");
  return items;
}

/**
 * The texts of the conditions that a logic rule joins: `((A,b),(C,d))`, and without the outer brackets, as many files
 * have it, `(A,b),(C,d)` or `(A,b)`. Throws `ConfigError`.
 */
export function splitConditions(text: string): readonly string[] {
  const items = splitItems(text);
  const [only] = items;
  return items.length === 1 && only?.startsWith("(") === true ? splitItems(only) : items;
}

/** The text inside one pair of brackets that spans everything: `(A,b)` gives `A,b`. Throws `ConfigError`. */
export function unwrapBrackets(text: string): string {
  const items = splitItems(text);
  if (items.length !== 1)
    throw new ConfigError(`expected one pair of brackets around everything, got ${excerpt(text, 0)}`);
  return itemAt(items, 0);
}

function excerpt(text: string, at: number): string {
  const part = text.slice(at, at + 24);
  return JSON.stringify(part.length < text.length - at ? `${part}…` : part);
}
