/**
 * The file's text as plain maps and lists. Unquoted scalars become `Plain`, quoted ones strings, null is absence;
 * anchors, aliases and merge keys are resolved. Every value can be found again in the text by its path.
 */
import { isAlias, isMap, isScalar, isSeq, type Document, type ParsedNode, type YAMLError } from "yaml";
import { messageOf } from "#core/errors.ts";
import { DEEPEST, parseYamlDocument, TOO_DEEP, YamlBoundError } from "#core/yaml-document.ts";
import type { Locate, Path, SourcePosition } from "./report.ts";
import { lineIndex } from "./lines.ts";
import { Converter } from "./yaml-convert.ts";
import { plainRules, type PlainRules } from "./plain-rules.ts";
import { around, isEmpty, isNull, offsetOf, topLevelKeyBefore } from "./yaml-nodes.ts";
import { lookalikeHint, wordsOf } from "./yaml-words.ts";

export interface YamlFault {
  readonly position: SourcePosition;
  readonly path: Path;
  readonly message: string;
}

export type YamlMap = Readonly<Record<string, unknown>>;

export interface YamlFile {
  /** Null when there is no map to read further; then a fault was reported. */
  readonly root: YamlMap | null;
  readonly faults: readonly YamlFault[];
  readonly warnings: readonly YamlFault[];
  readonly locate: Locate;
  /** Does the value of this top-level key carry an anchor, itself or somewhere inside? */
  holdsAnchor(key: string): boolean;
  /** The keys of the map at a path that have no value; `root` does not have them. */
  emptyKeys(path: Path): readonly string[];
}

/** One stray bracket can make every later line a fault; more of them say nothing new. */
const MOST_FAULTS = 100;
const PLAIN_TAG = /tag:yaml\.org,2002:(int|float|bool|null|merge)$/;
/** Characters to each side of a fault that are looked at for what is hard to see. */
const NEAR = 200;

/** `takeOut` finds rules that the library need not see. */
export function readYaml(text: string, takeOut: typeof plainRules = plainRules): YamlFile {
  const lines = lineIndex(text);
  const broken = (message: string, offset = 0): YamlFile => {
    const position = lines.position(offset);
    const path = topLevelKeyBefore(text, offset);
    return {
      root: null,
      faults: [{ position, path, message: `yaml: line ${position.line}: ${message}` }],
      warnings: [],
      locate: () => position,
      holdsAnchor: () => false,
      emptyKeys: () => [],
    };
  };
  if (text.trim() === "") return broken("the configuration file is empty");
  try {
    return withPlainRules(text, takeOut(text)) ?? new Reader(text, documentOf(text)).read();
  } catch (error) {
    if (error instanceof YamlBoundError) return broken(error.message, error.offset);
    if (error instanceof RangeError) return broken(TOO_DEEP);
    return broken(messageOf(error));
  }
}

function documentOf(text: string): Document.Parsed {
  return parseYamlDocument(text, {
    schema: "failsafe", // scalars keep their text; what they mean is decided by the field that reads them
    resolveKnownTags: false, // with them a !!binary is bytes and a !!timestamp a date, and neither has a text
    uniqueKeys: false, // checked by the converter: the library compares every key with every other
  });
}

/** The file whose rules are read line by line; null where the library has to see them, because of any fault say. */
function withPlainRules(text: string, rules: PlainRules | null): YamlFile | null {
  if (rules === null) return null;
  const { items, offsets, keyOffset, listOffset } = rules;
  const document = documentOf(rules.rest);
  const file = new Reader(text, document).read();
  if (file.root === null || !isEmptyKey(document.contents, keyOffset)) return null;
  const lines = lineIndex(text);
  return {
    ...file,
    root: Object.assign(Object.create(null), file.root, { rules: items }),
    locate(path, part) {
      const [key, at] = path;
      if (key !== "rules" || (at === undefined && part === "key")) return file.locate(path, part);
      return lines.position(offsets[Number(at)] ?? listOffset);
    },
    emptyKeys: (path) => file.emptyKeys(path).filter((key) => path.length > 0 || key !== "rules"),
  };
}

/** Is the key at this offset one of the file itself, without a value? */
function isEmptyKey(contents: ParsedNode | null, offset: number): boolean {
  if (!isMap(contents) || contents.flow === true) return false;
  return contents.items.some(
    ({ key, value }) => offsetOf(key) === offset && (value === null || isEmpty(value)),
  );
}

class Reader {
  readonly #text: string;
  readonly #lines: ReturnType<typeof lineIndex>;
  readonly #document: Document.Parsed;
  readonly #faults: YamlFault[] = [];
  readonly #warnings: YamlFault[] = [];
  readonly #converter: Converter;
  /** Offsets of syntax faults. */
  readonly #faulty = new Set<number>();

  constructor(text: string, document: Document.Parsed) {
    this.#text = text;
    this.#lines = lineIndex(text);
    this.#document = document;
    this.#converter = new Converter(
      (offset, path, message) => this.#faults.push(this.#fault(offset, path, message)),
      (offset) => this.#lines.position(offset).line,
    );
  }

  read(): YamlFile {
    const { contents, errors, warnings } = this.#document;
    this.#readErrors(errors);
    this.#warnOfTags(warnings);
    return {
      root: this.#faults.length === 0 ? this.#readRoot(contents) : null,
      faults: this.#faults,
      warnings: this.#warnings,
      locate: (path, at) => this.#lines.position(this.#converter.offsetOf(contents, path, at)),
      holdsAnchor: (key) => {
        const value = isMap(contents) ? this.#converter.pairsOf(contents).get(key)?.value : null;
        return anchored(value);
      },
      emptyKeys: (path) => this.#converter.emptyKeys(contents, path),
    };
  }

  /** One fault a place: what the library says there besides follows from the first. */
  #readErrors(errors: readonly YAMLError[]): void {
    for (const error of errors) {
      const [offset] = error.pos;
      if (error.code === "MULTIPLE_DOCS") {
        this.#warnings.push(this.#fault(offset, [], "only the first document is read"));
        continue;
      }
      if (this.#faulty.has(offset)) continue;
      this.#faulty.add(offset);
      const fault = this.#syntaxFault(offset, error);
      this.#faults.push(fault);
      if (this.#faults.length >= MOST_FAULTS || fault.message.endsWith(TOO_DEEP)) return;
    }
  }

  /** `!!int` and the like change nothing: the field that reads a value decides. */
  #warnOfTags(warnings: readonly YAMLError[]): void {
    const tags = warnings.filter(
      ({ code, message }) => code === "TAG_RESOLVE_FAILED" && !PLAIN_TAG.test(message),
    );
    for (const { pos } of tags.slice(0, MOST_FAULTS)) {
      const { path } = around(this.#document.contents, pos[0], this.#faulty);
      this.#warnings.push(this.#fault(pos[0], path, "the tag means nothing here and is left out"));
    }
  }

  #syntaxFault(offset: number, error: YAMLError): YamlFault {
    const { path, node } = around(this.#document.contents, offset, this.#faulty);
    if (path.length > DEEPEST || error.message.startsWith("Maximum call stack"))
      return this.#fault(offset, path, TOO_DEEP);
    const at = path.length > 0 ? path : topLevelKeyBefore(this.#text, offset);
    const opened =
      error.message.startsWith("Missing closing") && isScalar(node)
        ? `, opened at line ${this.#lines.position(offsetOf(node)).line}`
        : "";
    return this.#fault(offset, at, wordsOf(error) + opened + lookalikeHint(this.#lineAt(offset)));
  }

  #readRoot(contents: ParsedNode | null): YamlMap | null {
    if (contents === null || isNull(contents)) return Object.create(null);
    if (isMap(contents)) return this.#converter.convert(contents);
    const got = isSeq(contents) ? "a list" : "text";
    const offset = offsetOf(contents);
    const message = `expected a map of settings at the top of the file, such as mixed-port: 7890, got ${got}`;
    this.#faults.push(this.#fault(offset, [], message + lookalikeHint(this.#lineAt(offset))));
    return null;
  }

  /** The line around an offset; of a long one the part that is near. */
  #lineAt(offset: number): string {
    const before = this.#text.slice(Math.max(0, offset - NEAR), offset);
    const [after = ""] = this.#text.slice(offset, offset + NEAR).split("\n", 1);
    return before.slice(before.lastIndexOf("\n") + 1) + after;
  }

  #fault(offset: number, path: Path, message: string): YamlFault {
    const position = this.#lines.position(offset);
    return { position, path, message: `yaml: line ${position.line}: ${message}` };
  }
}

function anchored(node: ParsedNode | null | undefined): boolean {
  if (node === null || node === undefined || isAlias(node)) return false;
  if (node.anchor !== undefined) return true;
  if (isMap(node)) return node.items.some((pair) => anchored(pair.value));
  return isSeq(node) && node.items.some((item) => anchored(item));
}
