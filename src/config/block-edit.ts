/** Puts a new value under a top-level key of a file's text. */
import { isMap, isNode, isScalar, isSeq, type Document, type YAMLMap, type YAMLSeq } from "yaml";
import { ConfigError } from "#core/errors.ts";
import { parseYamlDocument, YamlBoundError } from "#core/yaml-document.ts";

/** Comments stay, also inside the block where what they belong to stays. Throws `ConfigError` where the text is no map. */
export function withBlock(text: string, key: string, value: object): string {
  const document = documentOf(text);
  if (document.errors.length > 0 || !isMap(document.contents)) throw uneditable("it is no YAML map");
  const there = positionOf(document.contents, key);
  mergeKey(document, document.contents, key, value);
  const edited = document.toString({ lineWidth: 0 });
  const made = positionOf(documentOf(edited).contents, key);
  if (made === null || document.contents.flow === true) return edited;
  // Writing the whole file anew would lose its author's spacing.
  const block = `${edited.slice(...made).trimEnd()}\n`;
  if (there !== null) return text.slice(0, there[0]) + block + text.slice(there[1]);
  return text.endsWith("\n") ? text + block : `${text}\n${block}`;
}

function documentOf(text: string): Document.Parsed {
  try {
    // Repeated keys are reported when the edited text is read; the library would compare each key with every other.
    return parseYamlDocument(text, { schema: "core", uniqueKeys: false });
  } catch (error) {
    if (error instanceof YamlBoundError) throw uneditable(error.message);
    throw error;
  }
}

function uneditable(why: string): ConfigError {
  return new ConfigError(`the configuration file cannot be edited: ${why}`);
}

/** From the key to the end of its value, comments that follow in the same line included. */
function positionOf(map: unknown, key: string): readonly [start: number, end: number] | null {
  if (!isMap(map)) return null;
  const pair = map.items.find((item) => keyText(item.key) === key);
  const from = isNode(pair?.key) ? pair.key.range : null;
  const to = isNode(pair?.value) ? pair.value.range : null;
  return from && to ? [from[0], to[2]] : null;
}

function mergeKey(document: Document, map: YAMLMap, key: string, value: unknown): void {
  const there = map.get(key, true);
  if (isPlainMap(value) && isMap(there)) return mergeMap(document, there, value);
  if (Array.isArray(value) && isSeq(there)) return mergeList(document, there, value);
  if (isScalar(there) && String(there.value) === String(value)) return; // written in another way, but the same
  if (isScalar(there) && !isPlainMap(value) && !Array.isArray(value)) {
    there.value = value;
    delete there.format; // hexadecimal, say: that was about the value before
  } else map.set(key, document.createNode(value));
}

function mergeMap(document: Document, map: YAMLMap, value: Readonly<Record<string, unknown>>): void {
  const stale = map.items.filter(({ key }) => !Object.hasOwn(value, keyText(key)));
  for (const { key } of stale) map.delete(key);
  for (const [key, member] of Object.entries(value)) mergeKey(document, map, key, member);
}

/** An item with the same id keeps its comments; the order is that of the value. */
function mergeList(document: Document, list: YAMLSeq, value: readonly unknown[]): void {
  const known = new Map<unknown, YAMLMap>();
  for (const item of list.items) if (isMap(item) && item.has("id")) known.set(item.get("id"), item);
  list.items = value.map((member) => {
    const there = isPlainMap(member) ? known.get(member["id"]) : undefined;
    if (there === undefined || !isPlainMap(member)) return document.createNode(member);
    mergeMap(document, there, member);
    return there;
  });
}

function keyText(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

function isPlainMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
