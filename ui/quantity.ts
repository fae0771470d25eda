import { lastOf } from "#lib/at.ts";
/** Amounts and rates as people type them: `100 GiB`, `1 TB`, `20 Mbit/s`. What is shown can be typed back and means the same. */

const AMOUNT_UNITS: readonly (readonly [name: string, size: number])[] = [
  ["PiB", 2 ** 50],
  ["PB", 1e15],
  ["TiB", 2 ** 40],
  ["TB", 1e12],
  ["GiB", 2 ** 30],
  ["GB", 1e9],
  ["MiB", 2 ** 20],
  ["MB", 1e6],
  ["KiB", 1024],
  ["kB", 1000],
  ["B", 1],
];
const RATE_UNITS: readonly (readonly [name: string, size: number])[] = [
  ["Gbit/s", 1e9],
  ["Mbit/s", 1e6],
  ["kbit/s", 1000],
  ["bit/s", 1],
];

/** `1.5 GiB` where that is exact to a thousandth of the unit; 0 is "". */
export const amountText = (bytes: number): string => written(bytes, AMOUNT_UNITS);
export const rateLimitText = (bitsPerSecond: number): string => written(bitsPerSecond, RATE_UNITS);

/** Bytes; a bare number is bytes, "" is 0. Null: neither. */
export const parseAmount = (text: string): number | null => read(text, AMOUNT_UNITS, /i?b$/);
/** Bits per second; a bare number is bit/s, "" is 0. Null: neither. */
export const parseRateLimit = (text: string): number | null =>
  read(text, RATE_UNITS, /(?:b(?:its?)?)?(?:\/s|ps)?$/);

type Units = typeof AMOUNT_UNITS;

function written(value: number, units: Units): string {
  if (value === 0) return "";
  const found = units.find(
    ([, size]) =>
      value >= size &&
      (value * 1000) % size === 0 && // which is rounded itself where it is beyond all integers that numbers can be
      Math.round((value / size) * size) === value,
  );
  const [name, size] = found ?? lastOf(units);
  return `${value / size} ${name}`;
}

/** `tail`: what may be left out of a unit, so that `20M` and `100 G` are understood. */
function read(text: string, units: Units, tail: RegExp): number | null {
  const clean = text.trim().toLowerCase();
  if (clean === "") return 0;
  const [, digits, word = ""] = /^(\d+(?:\.\d+)?)\s*([a-z/]*)$/.exec(clean) ?? [];
  if (digits === undefined) return null;
  const unit =
    word === ""
      ? units.at(-1)
      : (units.find(([name]) => name.toLowerCase() === word) ??
        units.find(([name]) => name.toLowerCase().replace(tail, "") === word.replace(tail, "")));
  const value = unit === undefined ? Number.NaN : Math.round(Number(digits) * unit[1]);
  return Number.isSafeInteger(value) ? value : null;
}
