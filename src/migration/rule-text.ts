/** Conditions of another program as lines of `rules`. */

export const NO_RESOLVE = ",no-resolve";

/** One text that holds where any of the items does. */
export function anyOf(items: readonly string[]): string {
  const [only, ...others] = items;
  return others.length === 0 ? (only ?? "") : `OR,(${items.map((item) => `(${item})`).join(",")})`;
}

/** Null: brackets of a pattern would be read as those of the condition. */
export function allOf(conditions: readonly (readonly string[])[]): string | null {
  const [only, ...others] = conditions;
  if (others.length === 0) return anyOf(only ?? []);
  if (conditions.flat().some(hasStrayBrackets)) return null;
  return `AND,(${conditions.map((items) => `(${anyOf(items)})`).join(",")})`;
}

const LOGICAL = /^(?:AND|OR|NOT),/;

function hasStrayBrackets(item: string): boolean {
  return !LOGICAL.test(item) && /[()]/.test(item);
}

/** A rule holds where each of its conditions does, a condition where one of its items does. Null as with `allOf`. */
export function ruleLines(
  conditions: readonly (readonly string[])[],
  target: string,
): readonly string[] | null {
  const [only, ...others] = conditions;
  if (only === undefined) return [];
  if (others.length === 0) return only.map((item) => withTarget(item, target));
  const all = allOf(conditions);
  return all === null ? null : [`${all},${target}`];
}

/** The target stands in front of `no-resolve`. */
function withTarget(item: string, target: string): string {
  return !LOGICAL.test(item) && item.endsWith(NO_RESOLVE)
    ? `${item.slice(0, -NO_RESOLVE.length)},${target}${NO_RESOLVE}`
    : `${item},${target}`;
}

/** `prefix`: `SRC-` for sources. Null: neither address nor network. */
export function networkItem(text: string, prefix: "" | "SRC-", suffix: string): string | null {
  if (!/^[\da-f:.]+(?:\/\d{1,3})?$/i.test(text)) return null;
  const isLong = text.includes(":");
  const network = text.includes("/") ? text : `${text}/${isLong ? 128 : 32}`;
  const type = isLong && prefix === "" ? "IP-CIDR6" : "IP-CIDR";
  return `${prefix}${type},${network}${suffix}`;
}

/** Null where one of them is. */
export function everyOne(items: readonly (string | null)[]): readonly string[] | null {
  const read = items.filter((item) => item !== null);
  return read.length === items.length ? read : null;
}
