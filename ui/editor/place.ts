/** Where in a YAML text the caret is: found by indentation, for hints only. Flow style (`{ a: 1 }`) has none. */

/** In a path: an item of a list. */
export const ITEM = "-";

export interface Place {
  /** Keys of the maps around it, from the top; `-` for an item of a list. */
  readonly path: readonly string[];
  /** The key whose value is written; null: a key is written, or an item. */
  readonly key: string | null;
  /** What of the word stands before the caret, and where that begins. */
  readonly typed: string;
  readonly from: number;
  /** The `type` of the map, which decides what else can stand in it. */
  readonly type: string | null;
}

const LINE = /^( *)((?:- +)*)(?:(["']?)([^\s"'#{}[\],:][^"'#{}[\]:]*)\3 *:(?: +(.*))?)?$/;
const KEY = /^( *)((?:- +)*)([\w.+/-]*)$/;
const VALUE = /^( *)((?:- +)*)(["']?)([^\s"'#{}[\],:][^"'#{}[\]:]*)\3 *: +(["']?[^\s#{}[\]]*)$/;
/** Lines that are looked at above the caret and below it. */
const MOST_LINES = 5_000;

interface Line {
  /** Columns of the dashes and of the key. */
  readonly dashes: readonly number[];
  readonly column: number;
  readonly key: string | null;
  readonly value: string;
}

function lineOf(text: string): Line | null {
  const [whole, blank = "", dashes = "", , key = null, value = ""] = LINE.exec(text) ?? [];
  if (whole === undefined || whole.trim() === "") return null;
  return { ...columnsOf(blank, dashes), key, value: value.trim() };
}

function columnsOf(blank: string, dashes: string): Pick<Line, "dashes" | "column"> {
  const places = [...dashes.matchAll(/-/g)].map(({ index }) => blank.length + index);
  return { dashes: places, column: blank.length + dashes.length };
}

/** Null: in flow style, a comment or a text of several lines. */
export function placeAt(text: string, caret: number): Place | null {
  const start = text.lastIndexOf("\n", caret - 1) + 1;
  const before = text.slice(start, caret);
  const [isValue, blank = "", dashes = "", , key = null, value = ""] = VALUE.exec(before) ?? [];
  if (isValue !== undefined) return around(text, start, columnsOf(blank, dashes), key, value, caret);
  const [isKey, space = "", items = "", typed = ""] = KEY.exec(before) ?? [];
  return isKey === undefined ? null : around(text, start, columnsOf(space, items), null, typed, caret);
}

function around(
  text: string,
  start: number,
  { dashes, column }: Pick<Line, "dashes" | "column">,
  key: string | null,
  typed: string,
  caret: number,
): Place {
  const above = text
    .slice(0, start)
    .split("\n")
    .slice(-MOST_LINES - 1, -1)
    .reverse();
  const below = text.slice(start).split("\n").slice(1, MOST_LINES);
  const path: string[] = [];
  let type = dashes.length === 0 ? typeAbove(above, column) : null;
  type ??= typeBelow(below, column);
  climb(above, dashes, column, path);
  return { path, key, typed, from: caret - typed.length, type };
}

/** Puts what is around a column in front of the path, the innermost first. */
function climb(above: readonly string[], dashes: readonly number[], column: number, path: string[]): void {
  let edge = column;
  /** A list may stand below the very column of its key. */
  let isList = false;
  const pass = (items: readonly number[]): void => {
    for (const place of items.toReversed()) {
      path.unshift(ITEM);
      edge = place;
      isList = true;
    }
  };
  pass(dashes);
  for (const text of above) {
    const line = lineOf(text);
    if (line === null || (edge === 0 && !isList)) continue;
    const isSibling = line.column === edge && !isList;
    if (isSibling) pass(line.dashes);
    else if (
      line.key !== null &&
      (line.column < edge || (line.column === edge && line.dashes.length === 0))
    ) {
      path.unshift(line.key);
      edge = line.column;
      isList = false;
      pass(line.dashes);
    }
  }
}

function typeAbove(lines: readonly string[], column: number): string | null {
  for (const text of lines) {
    const line = lineOf(text);
    if (line === null || line.column > column) continue;
    if (line.column < column) return null;
    if (line.key === "type") return line.value;
    if (line.dashes.length > 0) return null;
  }
  return null;
}

function typeBelow(lines: readonly string[], column: number): string | null {
  for (const text of lines) {
    const line = lineOf(text);
    if (line === null || line.column > column) continue;
    if (line.column < column || line.dashes.length > 0) return null;
    if (line.key === "type") return line.value;
  }
  return null;
}
