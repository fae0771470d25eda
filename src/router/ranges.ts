import { ConfigError, UnusableError } from "#core/errors.ts";
import { show } from "#core/fields.ts";

/** Pairs of the first and the last number. */
export type Ranges = readonly (readonly [first: number, last: number])[];

/** What no item at all stands for. */
export const EVERYTHING: Ranges = [[0, Number.POSITIVE_INFINITY]];

const ITEM_LIMIT = 28;
/** A port beyond it is one that no connection has: other programs start with such a rule. */
const MOST_PORT = 65_535;

/** `80/443/8000-8080` (`/` or `,` between items, blanks ignored); empty or `*` is everything. Throws `ConfigError`. */
export function parseRanges(text: string, maximum: number): Ranges {
  const plain = text.replace(/\s+/g, "");
  if (plain === "" || plain === "*") return EVERYTHING;
  const items = plain.split(/[/,]/).map((item) => parseItem(item, maximum));
  if (items.length > ITEM_LIMIT)
    throw new ConfigError(`${items.length} ranges in one rule: at most ${ITEM_LIMIT}, write several rules`);
  return items;
}

function parseItem(item: string, maximum: number): readonly [low: number, high: number] {
  const [, first, second] = /^(\d+)(?:-(\d+))?$/.exec(item) ?? [];
  const low = Number(first);
  const high = second === undefined ? low : Number(second);
  if (first === undefined || low > maximum || high > maximum) {
    const message = `${show(item)} is no range: write n or a-b with numbers from 0 to ${maximum}`;
    throw first === undefined || maximum < MOST_PORT ? new ConfigError(message) : new UnusableError(message);
  }
  return low <= high ? [low, high] : [high, low];
}
