/** The text of a configuration with edits: only what they name changes, comments, anchors and spacing stay. */
import { isMap, isSeq, type Document } from "yaml";
import { ConfigError } from "#core/errors.ts";
import { itemAt } from "#lib/at.ts";
import { parseYamlDocument, YamlBoundError } from "#core/yaml-document.ts";
import { readYaml, type YamlMap } from "#config/yaml.ts";
import { isNull } from "#config/yaml-nodes.ts";
import type { Edit, Step } from "#core/config-edit.ts";
import { spliced, type Splice } from "./splice.ts";
import { entriesOf, isFlow, valueAt, type Collection } from "./entries.ts";
import { insertEntry, linesAt } from "./insert.ts";
import { mergeValue, writtenItem, writtenPair } from "./merge.ts";
import { indexOf, refusal, walk, type Level, type Walk } from "./path.ts";
import { changed, isSame, nested, plainAt, type Change } from "./plain.ts";
import { linesOf, removeEntry } from "./remove.ts";
import { pairLines } from "./render.ts";
import { replaceValue } from "./replace.ts";

/**
 * One after the other. Throws `ConfigError`: the text is no YAML map, an edit names what is not there, or would change
 * more than it says, such as every place that uses an anchor.
 */
export function withEdits(text: string, edits: readonly Edit[]): string {
  return edits.reduce(withEdit, text);
}

/** What an edit does to the text, and to what the text says. */
interface Plan {
  readonly splices: readonly Splice[];
  readonly path: readonly Step[];
  readonly change: Change;
}

interface Source {
  readonly text: string;
  readonly document: Document.Parsed;
  readonly plain: YamlMap;
}

function withEdit(text: string, edit: Edit): string {
  const source = { text, document: documentOf(text), plain: plainOf(text) };
  const { splices, path, change } = planOf(source, edit);
  const edited = spliced(text, splices);
  const wanted = changed(source.plain, path, change);
  if (!isSame(plainOf(edited), wanted))
    throw refusal(edit.path, "more would change, such as what is written by an anchor; change the text");
  return edited;
}

function documentOf(text: string): Document.Parsed {
  try {
    return parseYamlDocument(text, {
      schema: "failsafe",
      resolveKnownTags: false,
      uniqueKeys: false,
      keepSourceTokens: true,
    });
  } catch (error) {
    if (error instanceof YamlBoundError) throw refusal([], error.message);
    throw error;
  }
}

function plainOf(text: string): YamlMap {
  const { root, faults } = readYaml(text);
  if (root !== null && faults.length === 0) return root;
  throw new ConfigError(`the configuration file cannot be edited: ${faults[0]?.message ?? "it is no map"}`);
}

function planOf(source: Source, edit: Edit): Plan {
  if (edit.path.length === 0) throw refusal([], "an edit names a key");
  const found = walk(source.document.contents, edit.path);
  if (edit.op === "remove") return removal(source, found, edit.path);
  if (edit.op === "set") {
    const last = found.levels.at(-1);
    if (found.missing.length > 0 || last === undefined) return newKeys(source, found, edit);
    const path = stepsOf(found.levels);
    const values = { plain: plainAt(source.plain, path), value: edit.value };
    const splices = mergeValue(source.text, last.collection, last.at, values);
    return { splices, path, change: { kind: "set", value: edit.value } };
  }
  return newItem(source, found, edit);
}

function newItem(source: Source, found: Walk, edit: Extract<Edit, { op: "add" }>): Plan {
  const last = found.levels.at(-1);
  const list = last === undefined ? null : valueAt(last.collection, last.at);
  if (found.missing.length > 0 || last === undefined || list === null || isNull(list)) {
    const { path, value } = edit;
    return planOf(source, { op: "set", path, value: [value] });
  }
  if (!isSeq(list)) throw refusal(edit.path, "it is no list");
  const at = placeIn(list, edit);
  const splices = insertEntry(source.text, list, at, writtenItem(list, edit.value));
  return { splices, path: [...stepsOf(found.levels), at], change: { kind: "insert", value: edit.value } };
}

/** The index that a new entry gets. */
function placeIn(
  collection: Collection,
  { before, after, path }: Extract<Edit, { op: "add" | "set" }>,
): number {
  if (before !== undefined && after !== undefined)
    throw refusal(path, "it is to be before one and after another");
  const beside = before ?? after;
  if (beside === undefined) return collection.items.length;
  const at = indexOf(collection, beside, path);
  if (at < 0) throw refusal(path, `there is no ${JSON.stringify(beside)} beside it`);
  return before === undefined ? at + 1 : at;
}

/** A key that is not there yet, with the maps on the way to it. */
function newKeys(
  { text, document }: Source,
  { levels, missing }: Walk,
  edit: Extract<Edit, { op: "set" }>,
): Plan {
  const [key = "", ...deeper] = missing;
  const value = nested(deeper, edit.value);
  const path = [...stepsOf(levels), key];
  const change: Change = { kind: "set", value };
  const last = levels.at(-1);
  const node = last === undefined ? document.contents : valueAt(last.collection, last.at);
  if (isMap(node)) {
    const at = deeper.length > 0 ? node.items.length : placeIn(node, edit);
    return { splices: insertEntry(text, node, at, writtenPair(key, value)), path, change };
  }
  if (last === undefined)
    return { splices: [linesAt(text, text.length, pairLines(key, value), 0)], path, change };
  return { splices: replaceValue(text, last.collection, last.at, { [key]: value }), path, change };
}

function removal({ text }: Source, { levels, missing }: Walk, path: readonly Step[]): Plan {
  const last = levels.at(-1);
  if (missing.length > 0 || last === undefined) throw refusal(path, "it is not there");
  const { collection, at } = last;
  const change: Change = { kind: "remove" };
  const steps = stepsOf(levels);
  if (isFlow(collection) || collection.items.length > 1)
    return { splices: removeEntry(text, collection, at), path: steps, change };
  const around = levels.at(-2);
  const [only] = entriesOf(collection);
  if (around === undefined)
    return { splices: [linesOf(text, itemAt([only], 0)?.start ?? 0, only?.end ?? 0)], path: steps, change };
  const splices = replaceValue(text, around.collection, around.at, isSeq(collection) ? [] : {});
  return { splices, path: steps, change };
}

function stepsOf(levels: readonly Level[]): readonly Step[] {
  return levels.map(({ step }) => step);
}
