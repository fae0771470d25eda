/** Lists of numbers and ranges, such as ports. */
import { Fault, scalar, show } from "./fields.ts";

/** Both ends belong to it. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export const isInRanges = (ranges: readonly Range[], number: number): boolean =>
  ranges.some(({ from, to }) => from <= number && number <= to);

const RANGE_ITEMS = 28;

/**
 * `80`, `1000-2000`, joined by `/` or `,`. Empty or `*` is everything. Throws nothing; answers a Fault with what
 * would be right.
 */
export function parseRanges(source: string, minimum: number, maximum: number): readonly Range[] | Fault {
  const body = source.replaceAll(/\s/g, "");
  if (body === "" || body === "*") return [{ from: minimum, to: maximum }];
  const items = body.split(/[/,]/).filter((item) => item !== "");
  if (items.length > RANGE_ITEMS) return new Fault(`expected at most ${RANGE_ITEMS} ranges`);
  const ranges: Range[] = [];
  for (const item of items) {
    const [, first, second] = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(item) ?? [];
    const ends = [Number(first), Number(second ?? first)];
    const from = Math.min(...ends);
    const to = Math.max(...ends);
    if (first === undefined || from < minimum || to > maximum)
      return new Fault(
        `expected numbers or ranges from ${minimum} to ${maximum} such as 80/443/1000-2000, got ${show(item)}`,
      );
    ranges.push({ from, to });
  }
  return ranges.length > 0 ? ranges : new Fault("expected at least one number or range");
}

export const ranges = (minimum: number, maximum: number) =>
  scalar({ type: ["string", "integer"] }, (source) => parseRanges(source, minimum, maximum));
