/** Contents of sets as text. */
import type { Prefix } from "#core/capture.ts";
import type { Range } from "#core/ranges.ts";
import type { TableName } from "./names.ts";
import { rangesOf, rangeText, rangeTexts4 } from "#capture/ranges.ts";

/** Of one family, merged: an interval set refuses what overlaps. */
export function prefixElements(prefixes: readonly Prefix[], family: 4 | 6): readonly string[] {
  if (family === 4) return rangeTexts4(prefixes);
  return rangesOf(prefixes, family).map((range) => rangeText(range, family));
}

/** `{ 80, 1000-2000 }` */
export function numberSet(ranges: readonly Range[]): string {
  return braced(ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)));
}

export function braced(items: readonly string[]): string {
  return `{ ${items.join(", ")} }`;
}

/** Replaces the contents of a set; part of a transaction. */
export function refill(table: TableName, set: string, elements: readonly string[]): string {
  const flush = `flush set ${table} ${set}\n`;
  return elements.length === 0 ? flush : `${flush}add element ${table} ${set} ${braced(elements)}\n`;
}
