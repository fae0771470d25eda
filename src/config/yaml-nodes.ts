/** What the nodes of the `yaml` package say, read with the failsafe schema: the value of every scalar is text. */
import { isMap, isScalar, isSeq, type Pair, type ParsedNode, type Scalar } from "yaml";
import { Plain } from "#core/fields.ts";

/** An entry of a map, as the parser gives it. */
export type ParsedPair = Pair<ParsedNode, ParsedNode | null>;

const NULLS = new Set(["", "~", "null", "Null", "NULL"]);
const TEXT_TAGS = new Set(["!", "tag:yaml.org,2002:str"]);

export function textOf(node: Scalar): string {
  return typeof node.value === "string" ? node.value : "";
}

export function isPlain(node: unknown): node is Scalar {
  return isScalar(node) && node.type === "PLAIN" && !TEXT_TAGS.has(node.tag ?? "");
}

export function isNull(node: unknown): boolean {
  return isPlain(node) && NULLS.has(textOf(node));
}

export function isEmpty(node: ParsedNode): boolean {
  return isScalar(node) && node.type === "PLAIN" && textOf(node) === "";
}

/** Unquoted text as `Plain`, quoted text as a string, null as absence. */
export function scalarValue(node: Scalar): unknown {
  if (isNull(node)) return undefined;
  const text = textOf(node);
  return isPlain(node) ? new Plain(text) : text;
}

export function offsetOf(node: ParsedNode): number {
  return node.range?.[0] ?? 0;
}

/** The key as written, else one that differs only in case or in `_` and `-`. */
export function findPair(pairs: ReadonlyMap<string, ParsedPair>, key: string): ParsedPair | null {
  const exact = pairs.get(key);
  if (exact !== undefined) return exact;
  const folded = key.toLowerCase().replaceAll("_", "-");
  for (const [name, pair] of pairs) if (name.toLowerCase().replaceAll("_", "-") === folded) return pair;
  return null;
}

export interface Around {
  /** From the root to the deepest value that begins at or before the offset. */
  readonly path: readonly (string | number)[];
  /** That value; null where there is none. */
  readonly node: ParsedNode | null;
}

/** An open quote swallows the file into one key; such a key and everything below it are of no use in a message. */
const LONGEST_KEY = 64;

/**
 * The structure around an offset in a document that may be broken. `faulty`: the offsets of faults; a node that begins
 * at one is no key but, likely, a value that was taken for one.
 */
export function around(root: ParsedNode | null, offset: number, faulty: ReadonlySet<number>): Around {
  const path: (string | number)[] = [];
  let node = root;
  while (node !== null) {
    const step = childAt(node, offset, faulty);
    if (step === null || String(step[0]).length > LONGEST_KEY) break;
    path.push(step[0]);
    node = step[1];
  }
  return { path, node };
}

function childAt(
  node: ParsedNode,
  offset: number,
  faulty: ReadonlySet<number>,
): readonly [string | number, ParsedNode | null] | null {
  if (isMap(node)) {
    const isBefore = (begin: number): boolean => begin <= offset && !faulty.has(begin);
    const pair = node.items.findLast(({ key }) => isScalar(key) && isBefore(offsetOf(key)));
    return pair === undefined || !isScalar(pair.key) ? null : [textOf(pair.key), pair.value];
  }
  if (!isSeq(node)) return null;
  const at = node.items.findLastIndex((item) => item !== null && offsetOf(item) <= offset);
  return at < 0 ? null : [at, node.items[at] ?? null];
}

const TOP_LEVEL_KEY = /^([^\s#:'"[{-][^:\n]{0,100}):/;
/** Lines that are looked at for a key; a list may be long, but not every fault of a hostile file may cost all of it. */
const MOST_LINES = 10_000;

/** The last top-level key before an offset, found in the text alone. */
export function topLevelKeyBefore(text: string, offset: number): readonly string[] {
  let end = offset + 1;
  for (let at = 0; at < MOST_LINES && end > 0; at++) {
    const begin = text.lastIndexOf("\n", end - 1) + 1;
    const key = TOP_LEVEL_KEY.exec(text.slice(begin, Math.min(end, begin + 200)))?.[1];
    if (key !== undefined) return [key.trim()];
    end = begin - 1;
  }
  return [];
}
