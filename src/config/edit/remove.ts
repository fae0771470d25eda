/** Entries that go, as changes of the text. The last entry of a collection is not taken out here: what is left is no collection. */
import type { Splice } from "./splice.ts";
import { entriesOf, isFlow, type Collection, type Entry } from "./entries.ts";
import { before, isBlank, lineBehind, lineStart, nextLine } from "./lines.ts";
import { itemAt } from "#lib/at.ts";

export function removeEntry(text: string, collection: Collection, at: number): readonly Splice[] {
  const entries = entriesOf(collection);
  const entry = itemAt(entries, at);
  if (isFlow(collection)) return [fromFlow(text, entries, at)];
  return [fromBlock(text, entry, entries[at + 1])];
}

/** The lines of a block. */
export function linesOf(text: string, start: number, end: number): Splice {
  return { start: lineStart(text, start), end: lineBehind(text, end), text: "" };
}

function fromBlock(text: string, { start, end }: Entry, next: Entry | undefined): Splice {
  if (isBlank(before(text, start))) return linesOf(text, start, end);
  // It shares its line with the dash of a list around it, and the next entry moves there.
  const isClose = next !== undefined && isBlank(text.slice(end, next.start));
  return { start, end: isClose ? next.start : end, text: "" };
}

function fromFlow(text: string, entries: readonly Entry[], at: number): Splice {
  const { start, end, comma } = itemAt(entries, at);
  const next = entries[at + 1];
  const last = comma ?? end;
  const rest = text.slice(last, nextLine(text, last));
  if (isBlank(before(text, start)) && /^[ \t]*(?:#.*)?\r?\n$/.test(rest)) return linesOf(text, start, last);
  if (next !== undefined)
    return { start, end: isBlank(text.slice(last, next.start)) ? next.start : last, text: "" };
  const previous = entries[at - 1];
  if (previous !== undefined && isBlank(text.slice(previous.comma ?? previous.end, start)))
    return { start: previous.end, end, text: "" };
  return { start, end: last, text: "" };
}
