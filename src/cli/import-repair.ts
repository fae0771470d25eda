/** What a start would refuse is taken out of an imported configuration, so that the rest of it can be used. */
import { withEdits } from "#config/edit/index.ts";
import { parseConfig, type ParseEnv } from "#config/parse.ts";
import type { Diagnostic } from "#config/report.ts";
import type { Edit, Step } from "#core/config-edit.ts";
import { ConfigError } from "#core/errors.ts";
import type { LeftOut } from "#migration/imported.ts";

/** A group that loses its last member can cost a rule, and that no more. */
const MOST_ROUNDS = 6;

/** Text that can be read, or the one before the last try; what went is in the report. */
export function withoutFaults(text: string, env: ParseEnv, report: LeftOut): string {
  let present = text;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const { errors = [] } = parseConfig(present, env);
    const faults = new Map(errors.flatMap((fault) => partOf(fault)));
    if (faults.size === 0) return present;
    const next = without(present, [...faults.values()]);
    if (next === null) return present;
    for (const { path, message, line } of errors)
      report.add(`${path} (line ${line})`, `${message}; it is left out`);
    present = next;
  }
  return present;
}

function partOf(fault: Diagnostic): readonly (readonly [string, readonly Step[]])[] {
  const steps = stepsOf(fault.path);
  return steps.length === 0 ? [] : [[JSON.stringify(steps), steps]];
}

/** The last ones first, so that indices stay what they are. Null: a place cannot be taken out of the text. */
function without(text: string, places: readonly (readonly Step[])[]): string | null {
  const edits: Edit[] = places.toSorted(later).map((path) => ({ op: "remove", path }));
  try {
    return withEdits(text, edits);
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
}

function later(left: readonly Step[], right: readonly Step[]): number {
  for (const [at, step] of left.entries()) {
    const other = right[at];
    if (other === undefined) return -1; // the inner one first
    if (step === other) continue;
    if (typeof step === "number" && typeof other === "number") return other - step;
    return String(step) < String(other) ? -1 : 1;
  }
  return left.length < right.length ? 1 : 0;
}

const PART = /\.?([\w-]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** The smallest part that can go by itself: an item of a list, a member of a group, a provider, else the key. */
function stepsOf(path: string): readonly Step[] {
  const steps: Step[] = [];
  PART.lastIndex = 0;
  for (let found = PART.exec(path); found !== null; found = PART.exec(path)) {
    const [, key, index, quoted] = found;
    steps.push(index === undefined ? (key ?? (JSON.parse(`"${quoted}"`) as string)) : Number(index));
  }
  if (steps[0] === "proxy-groups" && steps[2] === "proxies" && steps.length > 3) return steps.slice(0, 4);
  if (typeof steps[0] === "string" && steps[0].endsWith("-providers")) return steps.slice(0, 2);
  const list = steps.findIndex((step) => typeof step === "number");
  return list < 0 ? steps : steps.slice(0, list + 1);
}
