/** New entries of lists and maps, as changes of the text. */
import type { Splice } from "./splice.ts";
import { entriesOf, isFlow, type Collection, type Entry } from "./entries.ts";
import {
  before,
  behindDeeperComments,
  eolNear,
  isBlank,
  lineBehind,
  lineStart,
  nextLine,
  withCommentsAbove,
} from "./lines.ts";

/** How the entry is written: in one line between brackets, or as lines from column 0. */
export interface Written {
  readonly flow: string;
  readonly lines: readonly string[];
}

/** Before the entry of this index; behind the last one where there is none. */
export function insertEntry(
  text: string,
  collection: Collection,
  at: number,
  { flow, lines }: Written,
): readonly Splice[] {
  const entries = entriesOf(collection);
  const next = entries[at];
  const last = entries.at(-1);
  if (isFlow(collection)) {
    if (last === undefined) return [insertion(collection.range[0] + 1, flow)];
    return next === undefined ? behindFlow(text, last, flow) : [beforeFlow(text, next, flow)];
  }
  if (last === undefined) throw new Error("a block has entries");
  const least = at === 0 ? 0 : lineBehind(text, entries[at - 1]?.end ?? 0);
  return [next === undefined ? behindBlock(text, last, lines) : beforeBlock(text, next, lines, least)];
}

/** Lines behind an offset, each indented; the line there gets its end where it has none. */
export function linesAt(text: string, at: number, lines: readonly string[], indent: number): Splice {
  const eol = eolNear(text, at);
  const pad = " ".repeat(indent);
  const block = lines.map((line) => pad + line + eol).join("");
  const isOpen = at === text.length && at > 0 && text[at - 1] !== "\n";
  return insertion(at, isOpen ? eol + block.slice(0, -eol.length) : block);
}

function beforeBlock(text: string, next: Entry, lines: readonly string[], least: number): Splice {
  const lead = before(text, next.start);
  if (isBlank(lead)) {
    const line = lineStart(text, next.start);
    return linesAt(text, withCommentsAbove(text, line, lead.length, least), lines, lead.length);
  }
  const eol = eolNear(text, next.start); // shares its line with the dash of a list around it
  const pad = " ".repeat(lead.length);
  return insertion(next.start, lines.map((line, at) => (at === 0 ? line : pad + line) + eol).join("") + pad);
}

function behindBlock(text: string, last: Entry, lines: readonly string[]): Splice {
  const column = before(text, last.start).length;
  return linesAt(text, behindDeeperComments(text, lineBehind(text, last.end), column), lines, column);
}

function beforeFlow(text: string, next: Entry, flow: string): Splice {
  const lead = before(text, next.start);
  const isAlone = isBlank(lead);
  return insertion(next.start, isAlone ? `${flow},${eolNear(text, next.start)}${lead}` : `${flow}, `);
}

function behindFlow(text: string, last: Entry, flow: string): readonly Splice[] {
  const end = last.comma ?? last.end;
  const lead = before(text, last.start);
  const rest = text.slice(end, nextLine(text, end));
  if (!isBlank(lead) || !/^[ \t]*(?:#.*)?\r?\n$/.test(rest))
    return [insertion(end, last.comma === null ? `, ${flow}` : ` ${flow}`)];
  const line = insertion(
    nextLine(text, end),
    `${lead}${flow}${last.comma === null ? "" : ","}${eolNear(text, end)}`,
  );
  return last.comma === null ? [insertion(end, ","), line] : [line];
}

function insertion(at: number, text: string): Splice {
  return { start: at, end: at, text };
}
