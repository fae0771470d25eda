/** Which of two builds is newer. docs/adr/0097 says why a date is in their names, and what that cannot tell. */

export type Age = "older" | "same" | "newer" | "unknown";

/** `MAJOR.MINOR.PATCH`, then perhaps the day of the last commit and its hash, as scripts/build.mjs names builds. */
const VERSION = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-(\d{8})(?:-[0-9a-f]{4,40})?)?$/;

/** What `other` is to `ours`. Unknown: two builds of one day, or names that are no versions. */
export function ageOf(other: string, ours: string): Age {
  if (other === ours) return "same";
  const [theirs, own] = [numbersOf(other), numbersOf(ours)];
  if (theirs === null || own === null) return "unknown";
  for (const [at, number] of theirs.entries()) {
    const difference = number - (own[at] ?? 0);
    if (difference !== 0) return difference < 0 ? "older" : "newer";
  }
  return "unknown";
}

/** A release without a day counts as newer than the builds that led to it. */
const RELEASED = Number.MAX_SAFE_INTEGER;

function numbersOf(version: string): readonly number[] | null {
  const [, major, minor, patch, day] = VERSION.exec(version) ?? [];
  if (patch === undefined) return null;
  return [Number(major), Number(minor), Number(patch), day === undefined ? RELEASED : Number(day)];
}
