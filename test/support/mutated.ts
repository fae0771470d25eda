/** Values changed at random, for tests that say what else must stay as it was. */
import { isMapValue } from "#config/shape.ts";

const VALUES: readonly unknown[] = [
  "",
  null,
  -1,
  0,
  99_999,
  2 ** 53,
  1.5,
  true,
  "nonsense",
  "a b",
  "a..b",
  "://",
  "192.0.2.1/99",
  "é".repeat(300),
  [],
  {},
  ["nonsense", 7],
  { nonsense: { nonsense: [] } },
];

type Random = (below: number) => number;
export const pick = <T>(items: readonly T[], random: Random): T => items[random(items.length)] as T;

/** A copy in which one value, however deep, is another, is gone or has a key more. */
export function mutated(value: unknown, random: Random): unknown {
  if (typeof value === "string" && value.includes(",") && random(2) === 0) {
    const parts = value.split(",");
    parts[random(parts.length)] = String(pick(VALUES, random));
    return parts.join(",");
  }
  if (Array.isArray(value) && value.length > 0 && random(4) > 0) {
    const at = random(value.length);
    return value.map((item: unknown, index) => (index === at ? mutated(item, random) : item));
  }
  if (!isMapValue(value) || random(12) === 0) return pick(VALUES, random);
  const key = pick(Object.keys(value), random);
  const { [key]: old, ...rest } = value;
  const kind = random(10);
  if (kind === 0) return rest;
  if (kind === 1) return { ...value, nonsense: 1 };
  return { ...rest, [key]: mutated(old, random) };
}
