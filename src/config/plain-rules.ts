/**
 * The list `rules` where it is nothing but plain lines, as nearly every one is: read line by line and taken out of the text
 * before the YAML library sees it, which takes many times as long and makes several objects of each line.
 */
import { Plain } from "#core/fields.ts";
import { trimEndOf } from "#lib/trim-end.ts";

export interface PlainRules {
  /** The text with blanks in place of the list: every offset stays. */
  readonly rest: string;
  /** Of the key in the text, and of the first item with its dash. */
  readonly keyOffset: number;
  readonly listOffset: number;
  /** As the YAML reader gives them. */
  readonly items: readonly (Plain | string)[];
  /** Of each item behind its dash. */
  readonly offsets: readonly number[];
}

const KEY = /^rules:[ \t]*(?:[ \t]#.*)?\r?\n/m;
/** As many as the library's reader takes before its own bound. */
const MOST_ITEMS = 700_000;

/** Null where there is no such list. Whether the key is one of the file itself, the caller finds out in what is left. */
export function plainRules(text: string): PlainRules | null {
  const key = KEY.exec(text);
  if (key === null) return null;
  const begin = key.index + key[0].length;
  const items: (Plain | string)[] = [];
  const offsets: number[] = [];
  let indent = -1;
  let end = begin;
  for (let at = begin, next = 0; at < text.length; at = next) {
    next = text.indexOf("\n", at) + 1 || text.length;
    const line = text.slice(at, next);
    const column = line.search(/[^ ]/);
    if (/^[ \t]*(?:#.*)?\r?\n?$/.test(line)) continue;
    if (!line.startsWith("- ", column)) {
      if (column > 0) return null;
      break; // the next key
    }
    if (indent < 0) indent = column;
    const written = line.slice(column + 2).replace(/^ +/, "");
    const item = column === indent && items.length < MOST_ITEMS ? itemOf(written) : null;
    if (item === null) return null;
    items.push(item);
    offsets.push(next - written.length);
    end = next;
  }
  if (items.length === 0) return null;
  const rest = `${text.slice(0, begin - 1)}${" ".repeat(end - begin)}\n${text.slice(end)}`;
  return { rest, keyOffset: key.index, listOffset: begin + indent, items, offsets };
}

const QUOTED = /^(?:'([^'\p{Cc}]*)'|"([^"\\\p{Cc}]*)")(?:[ \t]+#.*)?[ \t]*\r?\n?$/u;
/** Begins no alias, tag, map or list, and is a rule: the fewest of the items that mean something else have a comma. */
const PLAIN = /^[A-Za-z0-9][^\p{Cc}\ufeff]*$/u;

/** Null where it takes the library to say what it is. */
function itemOf(written: string): Plain | string | null {
  const quoted = QUOTED.exec(written);
  if (quoted !== null) return quoted[1] ?? quoted[2] ?? null;
  const comment = written.search(/[ \t]#/);
  const text = trimEndOf(comment < 0 ? written : written.slice(0, comment), " \t\r\n");
  const isPlain = PLAIN.test(text) && text.includes(",") && !/:(?:[ \t]|$)/.test(text);
  return isPlain ? new Plain(text) : null;
}
