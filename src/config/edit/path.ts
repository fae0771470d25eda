/** From the words of an edit to places in the document. */
import { isAlias, isMap, isScalar, isSeq, type ParsedNode } from "yaml";
import { ConfigError } from "#core/errors.ts";
import { pathText } from "#config/report.ts";
import { isNull, textOf } from "#config/yaml-nodes.ts";
import type { Step } from "#core/config-edit.ts";
import { valueAt, type Collection } from "./entries.ts";

/** One step of a path: the entry of a collection. */
export interface Level {
  readonly collection: Collection;
  readonly at: number;
  /** The key as it is written, or the index. */
  readonly step: Step;
}

export interface Walk {
  /** As far as the document has them. */
  readonly levels: readonly Level[];
  /** Keys that are not there yet. */
  readonly missing: readonly string[];
}

/** Throws `ConfigError` where the path leads through text, an alias, or an item that is not there. */
export function walk(root: ParsedNode | null, path: readonly Step[]): Walk {
  const levels: Level[] = [];
  let node = root;
  for (const [depth, step] of path.entries()) {
    const here = path.slice(0, depth);
    if (node === null || isNull(node))
      return { levels, missing: path.slice(depth).map((key) => newKey(key, here)) };
    if (isAlias(node))
      throw refusal(here, `it is written as *${node.source}; change it there, or in the text`);
    if (!isMap(node) && !isSeq(node)) throw refusal(here, "it is neither a map nor a list");
    const at = indexOf(node, step, here);
    if (at < 0) return { levels, missing: path.slice(depth).map((key) => newKey(key, here)) };
    levels.push({ collection: node, at, step: keyAt(node, at) });
    node = valueAt(node, at);
  }
  return { levels, missing: [] };
}

/** The index of an entry of a collection; of a map -1 where it has none. Throws `ConfigError` where a list has none, or several. */
export function indexOf(collection: Collection, step: Step, path: readonly Step[]): number {
  if (isMap(collection)) {
    const keys = collection.items.map(({ key }) => (isScalar(key) ? textOf(key) : null));
    const exact = keys.indexOf(String(step));
    return exact >= 0 ? exact : keys.findIndex((key) => key !== null && folded(key) === folded(String(step)));
  }
  if (typeof step === "number") {
    if (step < 0 || step >= collection.items.length)
      throw refusal([...path, step], `the list has ${collection.items.length} items`);
    return step;
  }
  const found = [...collection.items.keys()].filter((at) => isCalled(valueAt(collection, at), step));
  const [first] = found;
  if (first === undefined) throw refusal(path, `no item is ${JSON.stringify(step)} or has that name`);
  if (found.length > 1)
    throw refusal(path, `${found.length} items are ${JSON.stringify(step)}: say which by its index`);
  return first;
}

function isCalled(node: ParsedNode | null, name: string): boolean {
  if (isScalar(node)) return textOf(node) === name;
  if (!isMap(node)) return false;
  return node.items.some(
    ({ key, value }) =>
      isScalar(key) && ["name", "id"].includes(textOf(key)) && isScalar(value) && textOf(value) === name,
  );
}

function keyAt(collection: Collection, at: number): Step {
  if (!isMap(collection)) return at;
  const key = collection.items[at]?.key;
  return isScalar(key) ? textOf(key) : at;
}

function newKey(step: Step, path: readonly Step[]): string {
  if (typeof step === "string") return step;
  throw refusal([...path, step], "there is no list");
}

/** As the file's reader compares keys: `_` is `-`, and letters are equal in either case. */
function folded(key: string): string {
  return key.toLowerCase().replaceAll("_", "-");
}

export function refusal(path: readonly Step[], why: string): ConfigError {
  return new ConfigError(`${path.length === 0 ? "(document)" : pathText(path)}: cannot be edited: ${why}`);
}
