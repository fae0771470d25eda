/**
 * The file's text as plain maps and lists. Unquoted scalars become `Plain`, quoted ones strings, null is absence;
 * anchors, aliases and merge keys are resolved. Every value can be found again in the text by its path.
 */
import { Plain } from "#core/fields.ts";
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  type Alias,
  type Document,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { messageOf } from "#core/errors.ts";
import type { Locate, Path, Place } from "./report.ts";
import { lineIndex } from "./lines.ts";

export interface YamlFault {
  readonly place: Place;
  readonly path: Path;
  readonly message: string;
}

export type YamlMap = Readonly<Record<string, unknown>>;

export interface YamlFile {
  /** Null where there is no map to go on with; then there is a fault. */
  readonly root: YamlMap | null;
  readonly faults: readonly YamlFault[];
  readonly warnings: readonly YamlFault[];
  readonly locate: Locate;
  /** Does the value of this top-level key carry an anchor, itself or somewhere inside? */
  holdsAnchor(key: string): boolean;
}

/** Aliases may repeat at most this many values; a file that wants more is an alias bomb. */
const MOST_ALIASED = 1_000_000;
const DEEPEST = 64;
const TOO_DEEP = `nested more than ${DEEPEST} levels deep`;
/** One stray bracket can make every later line a fault; beyond this they tell nothing new. */
const MOST_FAULTS = 100;
const LONGEST_KEY = 64;

export function readYaml(text: string): YamlFile {
  const lines = lineIndex(text);
  const broken = (message: string, offset = 0): YamlFile => {
    const place = lines.place(offset);
    return {
      root: null,
      faults: [{ place, path: [], message: `yaml: line ${place.line}: ${message}` }],
      warnings: [],
      locate: () => place,
      holdsAnchor: () => false,
    };
  };
  if (text.trim() === "") return broken("the configuration file is empty");
  try {
    const document = parseDocument(text, {
      schema: "failsafe", // scalars keep their text; what they mean is decided by the field that reads them
      uniqueKeys: false, // checked below: the library compares every key with every other
      prettyErrors: false,
      logLevel: "error",
    });
    return new Reader(text, document).read();
  } catch (error) {
    if (error instanceof RangeError) return broken(TOO_DEEP);
    return broken(messageOf(error));
  }
}

interface Converted {
  readonly value: unknown;
  /** Number of values in it, those behind aliases counted each time. */
  readonly size: number;
}

/** A path from its end: a value costs one small object, the list is made for faults only. */
type Trail = { readonly up: Trail; readonly part: string | number } | null;

class Reader {
  readonly #text: string;
  readonly #lines: ReturnType<typeof lineIndex>;
  readonly #document: Document.Parsed;
  readonly #faults: YamlFault[] = [];
  readonly #warnings: YamlFault[] = [];
  readonly #anchors = new Map<string, Node>();
  readonly #targets = new WeakMap<Alias, Node>();
  readonly #converted = new WeakMap<Node, Converted>();
  readonly #running = new Set<Node>();
  readonly #pairs = new WeakMap<YAMLMap, Map<string, Pair>>();
  #aliased = 0;
  #bombed = false;

  constructor(text: string, document: Document.Parsed) {
    this.#text = text;
    this.#lines = lineIndex(text);
    this.#document = document;
  }

  read(): YamlFile {
    const { contents, errors } = this.#document;
    for (const { pos, message, code } of errors.slice(0, MOST_FAULTS)) {
      const path = pathAt(contents, pos[0]) ?? topLevelKeyBefore(this.#text, pos[0]);
      if (code === "MULTIPLE_DOCS")
        this.#warnings.push(this.#fault(pos[0], [], "only the first document is read"));
      else
        this.#faults.push(
          this.#fault(pos[0], path, message.startsWith("Maximum call stack") ? TOO_DEEP : message),
        );
    }
    let root: YamlMap | null = null;
    if (this.#faults.length === 0) root = this.#readRoot(contents);
    return {
      root,
      faults: this.#faults,
      warnings: this.#warnings,
      locate: (path, at) => this.#lines.place(this.#offsetOf(path, at)),
      holdsAnchor: (key) => {
        const value = isMap(contents) ? this.#pairsOf(contents).get(key)?.value : null;
        return this.#anchored(value as Node | null);
      },
    };
  }

  #readRoot(contents: Node | null): YamlMap | null {
    if (contents === null || isNull(contents)) return Object.create(null) as YamlMap;
    if (!isMap(contents)) {
      const message = "expected a map of settings at the top of the file";
      this.#faults.push(this.#fault(offsetOf(contents), [], message));
      return null;
    }
    return this.#convert(contents, null, 0).value as YamlMap;
  }

  #convert(node: Node | null, trail: Trail, depth: number): Converted {
    if (node === null) return { value: undefined, size: 1 };
    if (depth > DEEPEST) {
      this.#faults.push(this.#faultAt(offsetOf(node), trail, TOO_DEEP));
      return { value: undefined, size: 1 };
    }
    if (isAlias(node)) return this.#follow(node, trail);
    if (node.anchor !== undefined && node.anchor !== "") this.#anchors.set(node.anchor, node);
    if (isScalar(node)) {
      const value = scalarValue(node);
      const converted = { value, size: 1 };
      if (node.anchor !== undefined) this.#converted.set(node, converted);
      return converted;
    }
    this.#running.add(node);
    const converted = isMap(node)
      ? this.#convertMap(node, trail, depth)
      : this.#convertList(node, trail, depth);
    this.#running.delete(node);
    if (node.anchor !== undefined) this.#converted.set(node, converted);
    return converted;
  }

  #follow(alias: Alias, trail: Trail): Converted {
    const target = this.#anchors.get(alias.source);
    const nothing = { value: undefined, size: 1 };
    if (target === undefined) {
      this.#faults.push(this.#faultAt(offsetOf(alias), trail, `unknown anchor '${alias.source}' referenced`));
      return nothing;
    }
    if (this.#running.has(target)) {
      this.#faults.push(
        this.#faultAt(offsetOf(alias), trail, `anchor '${alias.source}' value contains itself`),
      );
      return nothing;
    }
    this.#targets.set(alias, target);
    const converted = this.#converted.get(target) ?? nothing;
    this.#aliased += converted.size;
    if (this.#aliased <= MOST_ALIASED) return converted;
    if (!this.#bombed) {
      const message = `document contains excessive aliasing: more than ${MOST_ALIASED} repeated values`;
      this.#faults.push(this.#faultAt(offsetOf(alias), trail, message));
    }
    this.#bombed = true;
    return nothing;
  }

  #convertList(node: Node, trail: Trail, depth: number): Converted {
    const items = isSeq(node) ? (node.items as (Node | null)[]) : [];
    const list: unknown[] = [];
    let size = 1;
    for (const [at, item] of items.entries()) {
      const converted = this.#convert(item, { up: trail, part: at }, depth + 1);
      list.push(converted.value ?? new Plain("")); // an empty item is there, a null key is not
      size += converted.size;
    }
    return { value: list, size };
  }

  #convertMap(node: YAMLMap, trail: Trail, depth: number): Converted {
    const map = Object.create(null) as Record<string, unknown>;
    const merges: Pair[] = [];
    const pairs = new Map<string, Pair>();
    this.#pairs.set(node, pairs);
    let size = 1;
    for (const pair of node.items) {
      const key = this.#keyOf(pair, trail, depth);
      if (key === null) continue;
      const earlier = pairs.get(key);
      if (earlier !== undefined) {
        const { line } = this.#lines.place(offsetOf(earlier.key as Node));
        const message = `mapping key ${JSON.stringify(key)} already defined at line ${line}`;
        this.#faults.push(this.#faultAt(offsetOf(pair.key as Node), { up: trail, part: key }, message));
        continue;
      }
      pairs.set(key, pair);
      if (key === "<<" && isPlain(pair.key)) {
        merges.push(pair);
        continue;
      }
      const converted = this.#convert(pair.value as Node | null, { up: trail, part: key }, depth + 1);
      size += converted.size;
      if (converted.value !== undefined) map[key] = converted.value;
    }
    for (const pair of merges) size += this.#merge(map, pairs, pair, trail, depth);
    return { value: map, size };
  }

  #merge(
    into: Record<string, unknown>,
    pairs: Map<string, Pair>,
    pair: Pair,
    trail: Trail,
    depth: number,
  ): number {
    pairs.delete("<<");
    const written = pair.value as Node | null;
    const sources = isSeq(written) ? (written.items as Node[]) : [written];
    let size = 0;
    for (const source of sources) {
      const converted = this.#convert(source, { up: trail, part: "<<" }, depth + 1);
      const target = source !== null && isAlias(source) ? this.#targets.get(source) : source;
      if (!isMap(target)) {
        const offset = offsetOf(source ?? (pair.key as Node));
        this.#faults.push(
          this.#faultAt(
            offset,
            { up: trail, part: "<<" },
            "map merge requires map or sequence of maps as the value",
          ),
        );
        continue;
      }
      size += converted.size;
      for (const [key, inherited] of this.#pairs.get(target) ?? []) {
        if (pairs.has(key)) continue; // what is written here wins, then the earlier source
        pairs.set(key, inherited);
        const value = (converted.value as Record<string, unknown> | undefined)?.[key];
        if (value !== undefined) into[key] = value;
      }
    }
    return size;
  }

  #keyOf(pair: Pair, trail: Trail, depth: number): string | null {
    let key = pair.key as Node | null;
    if (key !== null && isAlias(key)) {
      this.#convert(key, trail, depth);
      key = this.#targets.get(key) ?? key;
    } else if (key !== null && key.anchor !== undefined) this.#anchors.set(key.anchor, key);
    if (isScalar(key)) return textOf(key);
    const offset = key === null ? 0 : offsetOf(key);
    this.#faults.push(this.#faultAt(offset, trail, "a key must be a single value"));
    return null;
  }

  #faultAt(offset: number, trail: Trail, message: string): YamlFault {
    const path: (string | number)[] = [];
    for (let at = trail; at !== null; at = at.up) path.unshift(at.part);
    return this.#fault(offset, path, message);
  }

  #fault(offset: number, path: Path, message: string): YamlFault {
    const place = this.#lines.place(offset);
    return { place, path, message: `yaml: line ${place.line}: ${message}` };
  }

  #offsetOf(path: Path, at: "key" | "value"): number {
    let node: Node | null | undefined = this.#document.contents;
    let offset = 0;
    for (const [depth, part] of path.entries()) {
      if (isAlias(node)) node = this.#targets.get(node);
      if (isMap(node)) {
        const pair = findPair(this.#pairsOf(node), String(part));
        if (pair === null) return offset;
        const last = depth === path.length - 1;
        const value = pair.value as Node | null;
        const useValue = last && at === "value" && value !== null && !isMap(value) && !isEmpty(value);
        offset = offsetOf(useValue ? value : (pair.key as Node));
        node = value;
      } else if (isSeq(node)) {
        node = node.items[Number(part)] as Node | undefined;
        if (node === undefined) return offset;
        offset = offsetOf(node);
      } else return offset;
    }
    return offset;
  }

  #pairsOf(map: YAMLMap): Map<string, Pair> {
    return this.#pairs.get(map) ?? new Map();
  }

  #anchored(node: Node | null | undefined): boolean {
    if (node === null || node === undefined || isAlias(node)) return false;
    if (node.anchor !== undefined) return true;
    if (isMap(node)) return node.items.some((pair) => this.#anchored(pair.value as Node | null));
    return isSeq(node) && node.items.some((item) => this.#anchored(item as Node | null));
  }
}

const NULLS = new Set(["", "~", "null", "Null", "NULL"]);
const TEXT_TAGS = new Set(["!", "tag:yaml.org,2002:str"]);

/** With the failsafe schema the value of every scalar is text. */
function textOf(node: Scalar): string {
  return typeof node.value === "string" ? node.value : "";
}

function isPlain(node: unknown): node is Scalar {
  return isScalar(node) && node.type === "PLAIN" && !TEXT_TAGS.has(node.tag ?? "");
}

function isNull(node: unknown): boolean {
  return isPlain(node) && NULLS.has(textOf(node));
}

function isEmpty(node: Node): boolean {
  return isScalar(node) && node.type === "PLAIN" && textOf(node) === "";
}

function scalarValue(node: Scalar): unknown {
  if (isNull(node)) return undefined;
  const text = textOf(node);
  return isPlain(node) ? new Plain(text) : text;
}

function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

/** The key as written, else one that differs only in case or in `_` and `-`. */
function findPair(pairs: Map<string, Pair>, key: string): Pair | null {
  const exact = pairs.get(key);
  if (exact !== undefined) return exact;
  const folded = key.toLowerCase().replaceAll("_", "-");
  for (const [name, pair] of pairs) if (name.toLowerCase().replaceAll("_", "-") === folded) return pair;
  return null;
}

/** The path of the deepest value around an offset, in a document that may be broken. */
function pathAt(root: Node | null, offset: number): Path | null {
  const path: (string | number)[] = [];
  for (let node: Node | null = root; node !== null;) {
    const step: readonly [string | number, Node | null] | null = childAt(node, offset);
    if (step === null || String(step[0]).length > LONGEST_KEY) break; // an open quote swallows the file into one key
    path.push(step[0]);
    node = step[1];
  }
  return path.length > 0 ? path : null;
}

function childAt(node: Node, offset: number): readonly [string | number, Node | null] | null {
  if (isMap(node)) {
    const pair = node.items.findLast(({ key }) => isScalar(key) && offsetOf(key) <= offset);
    return pair === undefined ? null : [textOf(pair.key as Scalar), pair.value as Node | null];
  }
  if (!isSeq(node)) return null;
  const at = node.items.findLastIndex((item) => item !== null && offsetOf(item as Node) <= offset);
  return at < 0 ? null : [at, node.items[at] as Node];
}

function topLevelKeyBefore(text: string, offset: number): Path {
  const keys = [...text.slice(0, offset + 1).matchAll(/^([^\s#:'"[{-][^:\n]{0,100}):/gm)];
  const key = keys.at(-1)?.[1];
  return key === undefined ? [] : [key.trim()];
}
