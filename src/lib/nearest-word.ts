import { itemAt } from "./at.ts";

/** Damerau-Levenshtein distance (adjacent letters swapped count once), given up above `limit`: then `limit + 1`. */
export function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let row = 1; row <= left.length; row++) {
    const next = [row];
    let best = row;
    for (let at = 1; at <= right.length; at++) {
      const same = left[row - 1] === right[at - 1];
      let cost = Math.min(
        itemAt(last, at) + 1,
        itemAt(next, at - 1) + 1,
        itemAt(last, at - 1) + (same ? 0 : 1),
      );
      const swapped = row > 1 && at > 1 && left[row - 1] === right[at - 2] && left[row - 2] === right[at - 1];
      if (swapped) cost = Math.min(cost, itemAt(before, at - 2) + 1);
      next.push(cost);
      best = Math.min(best, cost);
    }
    if (best > limit) return limit + 1;
    before = last;
    last = next;
  }
  return itemAt(last, right.length);
}

/** Longer names are not compared: they are no misspellings, and a hostile file must not buy computing time here. */
const LONGEST = 128;
/** More names than this are not searched. */
const MOST = 20_000;

/** The known name that was probably meant, or null. Case does not count; short words must be closer. */
export function nearest(wanted: string, known: Iterable<string>): string | null {
  const folded = wanted.toLowerCase();
  if (folded.length === 0 || folded.length > LONGEST) return null;
  let limit = folded.length < 2 ? 0 : folded.length <= 4 ? 1 : folded.length <= 7 ? 2 : 3;
  let found: string | null = null;
  let seen = 0;
  for (const name of known) {
    if (++seen > MOST) break;
    const distance = editDistance(folded, name.toLowerCase(), limit);
    if (distance > limit) continue;
    found = name;
    if (distance === 0) break;
    limit = distance - 1;
  }
  return found;
}

/** `; did you mean "rule"?`, or nothing. */
export function suggestion(wanted: string, known: Iterable<string>): string {
  const found = nearest(wanted, known);
  return found === null ? "" : `; did you mean ${JSON.stringify(found)}?`;
}
