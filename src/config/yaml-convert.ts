/** Nodes of a document as plain values, with anchors, aliases and merge keys resolved in document order. */
import { isAlias, isMap, isScalar, isSeq, type Alias, type ParsedNode, type YAMLMap } from "yaml";
import { Plain } from "#core/fields.ts";
import { DEEPEST, TOO_DEEP } from "#core/yaml-document.ts";
import type { Path } from "./report.ts";
import {
  findPair,
  isEmpty,
  isNull,
  isPlain,
  offsetOf,
  scalarValue,
  textOf,
  type ParsedPair,
} from "./yaml-nodes.ts";

/** Aliases may repeat at most this many values; a file that wants more is an alias bomb. */
const MOST_ALIASED = 1_000_000;
const NO_MERGE = "map merge requires map or sequence of maps as the value";

export type OnFault = (offset: number, path: Path, message: string) => void;

interface Converted {
  readonly value: unknown;
  /** Number of values in it, those behind aliases counted each time. */
  readonly size: number;
}

const NOTHING: Converted = { value: undefined, size: 1 };

/** A path from its end: a value costs one small object, the list is made for faults only. */
type Trail = { readonly up: Trail; readonly part: string | number } | null;

/** Converts one document; afterwards it knows where in the text a path leads, through aliases and merges. */
export class Converter {
  readonly #onFault: OnFault;
  readonly #lineOf: (offset: number) => number;
  readonly #anchors = new Map<string, ParsedNode>();
  readonly #targets = new WeakMap<Alias.Parsed, ParsedNode>();
  readonly #converted = new WeakMap<ParsedNode, Converted>();
  readonly #running = new Set<ParsedNode>();
  readonly #pairs = new WeakMap<YAMLMap.Parsed, Map<string, ParsedPair>>();
  #aliased = 0;
  #bombed = false;
  #tooDeep = false;

  /** `onFault` is called for every fault, repeated ones included. */
  constructor(onFault: OnFault, lineOf: (offset: number) => number) {
    this.#onFault = onFault;
    this.#lineOf = lineOf;
  }

  /** The map as an object without a prototype; null values are left out. */
  convert(root: YAMLMap.Parsed): Readonly<Record<string, unknown>> {
    return this.#convert(root, null, 0).value as Readonly<Record<string, unknown>>;
  }

  /** The pairs of a map by their keys, the merged ones among them; empty before the map was converted. */
  pairsOf(map: YAMLMap.Parsed): ReadonlyMap<string, ParsedPair> {
    return this.#pairs.get(map) ?? new Map<string, ParsedPair>();
  }

  /** The keys of the map at a path that have no value. */
  emptyKeys(root: ParsedNode | null, path: Path): readonly string[] {
    let node = this.#behind(root);
    for (const part of path)
      node = isMap(node) ? this.#behind(this.pairsOf(node).get(String(part))?.value) : null;
    if (!isMap(node)) return [];
    const empty = ({ value }: ParsedPair): boolean => value === null || isNull(this.#behind(value));
    return [...this.pairsOf(node)].filter(([, pair]) => empty(pair)).map(([key]) => key);
  }

  #behind(node: ParsedNode | null | undefined): ParsedNode | null | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  /** The offset of a path: of its key or its value; one that is not there at its parent. */
  offsetOf(root: ParsedNode | null, path: Path, at: "key" | "value"): number {
    let node: ParsedNode | null | undefined = root;
    let offset = 0;
    for (const [depth, part] of path.entries()) {
      if (isAlias(node)) node = this.#targets.get(node);
      if (isMap(node)) {
        const pair = findPair(this.pairsOf(node), String(part));
        if (pair === null) return offset;
        const last = depth === path.length - 1;
        const value = pair.value;
        const useValue = last && at === "value" && value !== null && !isMap(value) && !isEmpty(value);
        offset = offsetOf(useValue ? value : pair.key);
        node = value;
      } else if (isSeq(node)) {
        node = node.items[Number(part)];
        if (node === undefined) return offset;
        offset = offsetOf(node);
      } else return offset;
    }
    return offset;
  }

  #convert(node: ParsedNode | null, trail: Trail, depth: number): Converted {
    if (node === null) return NOTHING;
    if (depth > DEEPEST) {
      if (!this.#tooDeep) this.#fault(offsetOf(node), trail, TOO_DEEP);
      this.#tooDeep = true;
      return NOTHING;
    }
    if (isAlias(node)) return this.#follow(node, trail);
    if (node.anchor !== undefined && node.anchor !== "") this.#anchors.set(node.anchor, node);
    const converted = this.#convertValue(node, trail, depth);
    if (node.anchor !== undefined) this.#converted.set(node, converted);
    return converted;
  }

  #convertValue(node: ParsedNode, trail: Trail, depth: number): Converted {
    if (isScalar(node)) return { value: scalarValue(node), size: 1 };
    this.#running.add(node);
    const converted = isMap(node)
      ? this.#convertMap(node, trail, depth)
      : this.#convertList(node, trail, depth);
    this.#running.delete(node);
    return converted;
  }

  #follow(alias: Alias.Parsed, trail: Trail): Converted {
    const target = this.#anchors.get(alias.source);
    if (target === undefined) {
      this.#fault(offsetOf(alias), trail, `unknown anchor '${alias.source}' referenced`);
      return NOTHING;
    }
    if (this.#running.has(target)) {
      this.#fault(offsetOf(alias), trail, `anchor '${alias.source}' value contains itself`);
      return NOTHING;
    }
    this.#targets.set(alias, target);
    const converted = this.#converted.get(target) ?? NOTHING;
    this.#aliased += converted.size;
    if (this.#aliased <= MOST_ALIASED) return converted;
    const message = `document contains excessive aliasing: more than ${MOST_ALIASED} repeated values`;
    if (!this.#bombed) this.#fault(offsetOf(alias), trail, message);
    this.#bombed = true;
    return NOTHING;
  }

  #convertList(node: ParsedNode, trail: Trail, depth: number): Converted {
    const items = isSeq(node) ? node.items : [];
    const list: unknown[] = [];
    let size = 1;
    for (const [at, item] of items.entries()) {
      const converted = this.#convert(item, { up: trail, part: at }, depth + 1);
      list.push(converted.value ?? new Plain("")); // an empty item is there, a null key is not
      size += converted.size;
    }
    return { value: list, size };
  }

  #convertMap(node: YAMLMap.Parsed, trail: Trail, depth: number): Converted {
    const map: Record<string, unknown> = Object.create(null);
    const merges: ParsedPair[] = [];
    const pairs = new Map<string, ParsedPair>();
    this.#pairs.set(node, pairs);
    let size = 1;
    for (const pair of node.items) {
      const key = this.#keyOf(pair, trail, depth);
      if (key === null) continue;
      const earlier = pairs.get(key);
      if (earlier !== undefined) {
        const line = this.#lineOf(offsetOf(earlier.key));
        const message = `mapping key ${JSON.stringify(key)} already defined at line ${line}`;
        this.#fault(offsetOf(pair.key), { up: trail, part: key }, message);
        continue;
      }
      pairs.set(key, pair);
      if (key === "<<" && isPlain(pair.key)) {
        merges.push(pair);
        continue;
      }
      const converted = this.#convert(pair.value, { up: trail, part: key }, depth + 1);
      size += converted.size;
      if (converted.value !== undefined) map[key] = converted.value;
    }
    for (const pair of merges) size += this.#merge(map, pairs, pair, trail, depth);
    return { value: map, size };
  }

  #merge(
    into: Record<string, unknown>,
    pairs: Map<string, ParsedPair>,
    pair: ParsedPair,
    trail: Trail,
    depth: number,
  ): number {
    pairs.delete("<<");
    const here: Trail = { up: trail, part: "<<" };
    const written = pair.value;
    const sources = isSeq(written) ? written.items : [written];
    let size = 0;
    for (const source of sources) {
      const converted = this.#convert(source, here, depth + 1);
      const target = source !== null && isAlias(source) ? this.#targets.get(source) : source;
      if (target === undefined) continue; // the alias leads nowhere, and that has been said
      if (!isMap(target)) {
        this.#fault(offsetOf(source ?? pair.key), here, NO_MERGE);
        continue;
      }
      size += converted.size;
      for (const [key, inherited] of this.pairsOf(target)) {
        if (pairs.has(key)) continue; // what is written here wins, then the earlier source
        pairs.set(key, inherited);
        const value = (converted.value as Record<string, unknown> | undefined)?.[key];
        if (value !== undefined) into[key] = value;
      }
    }
    return size;
  }

  #keyOf(pair: ParsedPair, trail: Trail, depth: number): string | null {
    let key = pair.key;
    if (key !== null && isAlias(key)) {
      this.#convert(key, trail, depth);
      key = this.#targets.get(key) ?? key;
    } else if (key !== null && key.anchor !== undefined) this.#anchors.set(key.anchor, key);
    if (isScalar(key)) return textOf(key);
    const offset = key === null ? 0 : offsetOf(key);
    this.#fault(offset, trail, "a key must be a single value");
    return null;
  }

  #fault(offset: number, trail: Trail, message: string): void {
    const path: (string | number)[] = [];
    for (let at = trail; at !== null; at = at.up) path.unshift(at.part);
    this.#onFault(offset, path, message);
  }
}
