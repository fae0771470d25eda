/** The entries of a list or map as they stand in the text. */
import { isMap, isSeq, type CST, type ParsedNode, type YAMLMap, type YAMLSeq } from "yaml";
import { ConfigError } from "#core/errors.ts";

export type Collection = YAMLMap.Parsed | YAMLSeq.Parsed;

export interface Entry {
  /** Where its dash, its key or, between brackets, its value begins, with what belongs to it (anchor, tag, `?`). */
  readonly start: number;
  /** Behind its value; what follows in the line may be a comma or a comment. */
  readonly end: number;
  /** Behind the dash or the colon; null between brackets where there is none. */
  readonly sign: number | null;
  /** Behind an anchor or a tag of the value; `sign` where there is none. */
  readonly props: number | null;
  /** Behind the comma that follows. */
  readonly comma: number | null;
}

const NOTHING: ReadonlySet<string> = new Set(["space", "newline", "comment", "comma"]);
const SIGNS: ReadonlySet<string> = new Set(["seq-item-ind", "map-value-ind"]);
const PROPS: ReadonlySet<string> = new Set(["anchor", "tag"]);

export function isFlow(collection: Collection): boolean {
  return collection.flow === true;
}

/** In the order of `collection.items`. Throws `ConfigError` where the text is written in a way that cannot be followed. */
export function entriesOf(collection: Collection): readonly Entry[] {
  const { srcToken } = collection;
  const items = srcToken !== undefined && "items" in srcToken ? srcToken.items : [];
  const found = items.map((item, at) => entryOf(item, commaBehind(items[at + 1])));
  const entries = found.filter((entry) => entry !== null);
  if (entries.length !== collection.items.length)
    throw new ConfigError("the configuration file cannot be edited here: change the text");
  return entries.map((entry, at) => ({ ...entry, end: Math.max(entry.end, endOf(valueAt(collection, at))) }));
}

/** The value of an entry; null where it has none. */
export function valueAt(collection: Collection, at: number): ParsedNode | null {
  if (isSeq(collection)) return collection.items[at] ?? null;
  return isMap(collection) ? (collection.items[at]?.value ?? null) : null;
}

function entryOf(item: CST.CollectionItem, comma: number | null): Entry | null {
  const { start, key, sep, value } = item;
  const own = start.filter(({ type }) => !NOTHING.has(type));
  const signs = [...start, ...(sep ?? [])];
  const first = own[0] ?? key ?? sep?.find(({ type }) => !NOTHING.has(type)) ?? value;
  if (!first) return null;
  const sign = signs.findLast(({ type }) => SIGNS.has(type));
  const props = (sep ?? start).findLast(({ type }) => PROPS.has(type));
  const tokens = [...own, key, sign, props].filter((token) => token !== undefined && token !== null);
  return {
    start: first.offset,
    end: Math.max(...tokens.map(behind)),
    sign: sign === undefined ? null : behind(sign),
    props: props === undefined ? (sign === undefined ? null : behind(sign)) : behind(props),
    comma,
  };
}

function behind(token: CST.Token): number {
  return token.offset + ("source" in token ? token.source.length : 0);
}

function commaBehind(next: CST.CollectionItem | undefined): number | null {
  const comma = next?.start.find(({ type }) => type === "comma");
  return comma === undefined ? null : behind(comma);
}

/** Where a value ends, without comments and blank lines behind it; 0 where there is none. */
export function endOf(node: ParsedNode | null): number {
  if (node === null) return 0;
  if ((!isMap(node) && !isSeq(node)) || isFlow(node)) return node.range[1];
  return entriesOf(node).at(-1)?.end ?? node.range[1];
}
