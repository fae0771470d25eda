/** A new value in the place of one, as changes of the text. */
import { isMap, isScalar, isSeq, type ParsedNode } from "yaml";
import type { JsonValue } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";
import { itemAt } from "#lib/at.ts";
import type { Splice } from "./splice.ts";
import { endOf, entriesOf, isFlow, valueAt, type Collection, type Entry } from "./entries.ts";
import { linesAt } from "./insert.ts";
import { before, eolNear, lineBehind, nextLine } from "./lines.ts";
import { linesOf } from "./remove.ts";
import { blockLines, flowText, itemLines, scalarText } from "./render.ts";

/** The value of the entry of this index; an anchor on it stays. */
export function replaceValue(
  text: string,
  collection: Collection,
  at: number,
  value: JsonValue,
): readonly Splice[] {
  const entry = itemAt(entriesOf(collection), at);
  const old = valueAt(collection, at);
  if (isFlow(collection)) return [inFlow(entry, old, value)];
  const lines = blockLines(value);
  if (old !== null && isInline(old) && (lines === null || isCollection(old)))
    return [{ start: old.range[0], end: old.range[1], text: flowOrPlain(old, value) }];
  if (isSeq(collection)) return [item(text, entry, itemLines(value))];
  if (entry.props === null)
    throw new ConfigError("the configuration file cannot be edited here: change the text");
  const column = before(text, entry.start).length;
  if (isBlockOf(old)) return inBlock(text, { entry, old, value, lines }, entry.props);
  if (old !== null && isInline(old)) {
    const lead = before(text, old.range[0]);
    const start = old.range[0] - (lead.length - lead.trimEnd().length);
    const behind = lineBehind(text, old.range[1]);
    return [{ start, end: old.range[1], text: "" }, linesAt(text, behind, lines ?? [], column + 2)];
  }
  if (old !== null && old.range[1] > old.range[0]) return [blockScalar(text, old, value, column)];
  if (lines === null) return [{ start: entry.props, end: entry.props, text: ` ${scalarText(value, false)}` }];
  return [linesAt(text, nextLine(text, entry.props), lines, column + 2)];
}

function inFlow(entry: Entry, old: ParsedNode | null, value: JsonValue): Splice {
  if (old !== null && old.range[1] > old.range[0])
    return { start: old.range[0], end: old.range[1], text: flowText(value) };
  const at = entry.props ?? entry.end;
  return { start: at, end: at, text: `${entry.sign === null ? ":" : ""} ${flowText(value)}` };
}

interface BlockChange {
  readonly entry: Entry;
  readonly old: Collection;
  readonly value: JsonValue;
  readonly lines: readonly string[] | null;
}

/** The lines of a block under a key. */
function inBlock(text: string, { old, value, lines }: BlockChange, sign: number): readonly Splice[] {
  const first = itemAt(entriesOf(old), 0).start;
  const gone = linesOf(text, first, endOf(old));
  if (lines === null) return [{ start: sign, end: sign, text: ` ${scalarText(value, false)}` }, gone];
  const { text: fresh } = linesAt(text, gone.start, lines, before(text, first).length);
  return [{ ...gone, text: fresh }];
}

/** `|` or `>` and its lines. */
function blockScalar(text: string, old: ParsedNode, value: JsonValue, column: number): Splice {
  const [start, end] = old.range;
  const eol = eolNear(text, start);
  const lines = blockLines(value);
  const pad = " ".repeat(column + 2);
  const inside = lines === null ? scalarText(value, false) : eol + lines.map((line) => pad + line).join(eol);
  return { start, end, text: text[end - 1] === "\n" ? inside + eol : inside };
}

/** An item of a list, whatever it was. */
function item(text: string, entry: Entry, lines: readonly string[]): Splice {
  const pad = " ".repeat(before(text, entry.start).length);
  const eol = eolNear(text, entry.start);
  const end = text[entry.end - 1] === "\n" ? entry.end - eol.length : entry.end;
  return { start: entry.start, end, text: lines.map((line, at) => (at === 0 ? line : pad + line)).join(eol) };
}

function flowOrPlain(old: ParsedNode, value: JsonValue): string {
  return isCollection(old) ? flowText(value) : scalarText(value, false);
}

function isCollection(node: ParsedNode): node is Collection {
  return isMap(node) || isSeq(node);
}

function isBlockOf(node: ParsedNode | null): node is Collection {
  return node !== null && isCollection(node) && !isFlow(node);
}

/** Stands in the text as words of a line: a plain or quoted scalar, an alias, or something between brackets. */
function isInline(node: ParsedNode): boolean {
  if (node.range[1] <= node.range[0] || isBlockOf(node)) return false;
  return !isScalar(node) || (node.type !== "BLOCK_LITERAL" && node.type !== "BLOCK_FOLDED");
}
