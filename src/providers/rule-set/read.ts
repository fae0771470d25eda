/** From the bytes of a rule list to something that matches. */
import { ConfigError } from "#core/errors.ts";
import { Slices } from "#core/slices.ts";
import { decodedText } from "#lib/decoded-text.ts";
import { atOnce } from "#lib/steps.ts";
import {
  dataOf,
  domainList,
  listInSteps,
  networkList,
  Skipped,
  type Contents,
  type ReadList,
} from "./contents.ts";
import { textItems, yamlItems } from "./lines.ts";
import { decodeMrs } from "./mrs.ts";

export type Behavior = "domain" | "ipcidr" | "classical";
export type Format = "yaml" | "text" | "mrs";

/** Makes one condition of each line `TYPE,payload[,params]`; handed in by a caller that knows the rule types. */
export type ReadClassical = (items: readonly string[]) => Contents | Promise<Contents>;

export interface ListKind {
  readonly behavior: Behavior;
  readonly format: Format;
}

/** What a list is read to: built, or the lines of behavior classical, which need the rule types. */
export type ListParts = ReadList | { readonly lines: readonly string[] };

/** The part that takes time and can be done in another thread. Throws `ConfigError` or `ProtocolError`. */
export async function readListParts(bytes: Uint8Array, { behavior, format }: ListKind): Promise<ListParts> {
  if (format === "mrs") return readMrs(bytes, behavior);
  const lines = itemsOf(bytes, format);
  return behavior === "classical" ? { lines } : atOnce(listInSteps(lines, behavior));
}

/** Throws `ConfigError`, as `readListParts`: then nothing of it can be used. */
export async function contentsOfParts(
  parts: ListParts,
  { behavior }: ListKind,
  classical: ReadClassical,
  slices: Slices,
): Promise<Contents> {
  const contents =
    "lines" in parts
      ? await classical(parts.lines)
      : { data: await slices.run(dataOf(parts.list)), skipped: parts.skipped };
  const { count, first } = contents.skipped;
  const items = "lines" in parts ? parts.lines.length : contents.data.size + count;
  if (items > 0 && contents.data.size === 0)
    throw new ConfigError(`none of its ${items} items is of behavior ${behavior}: ${first}`);
  return contents;
}

export async function readRuleSet(
  bytes: Uint8Array,
  kind: ListKind,
  classical: ReadClassical,
): Promise<Contents> {
  return contentsOfParts(await readListParts(bytes, kind), kind, classical, new Slices());
}

/** The lines of a list in text form. */
export function itemsOf(bytes: Uint8Array, format: "yaml" | "text"): string[] {
  const text = decodedText(bytes);
  if (/^\s*<(?:!doctype|html)/i.test(text.slice(0, 200)))
    throw new ConfigError("this is an HTML page, not a rule list");
  return format === "yaml" ? yamlItems(text) : textItems(text);
}

/** The contents of lines that the configuration itself has, read in slices. */
export async function contentsOf(
  items: readonly string[],
  behavior: Behavior,
  classical: ReadClassical,
  slices: Slices,
): Promise<Contents> {
  if (behavior === "classical") return classical(items);
  const { list, skipped } = await slices.run(listInSteps(items, behavior));
  return { data: await slices.run(dataOf(list)), skipped };
}

async function readMrs(bytes: Uint8Array, behavior: Behavior): Promise<ReadList> {
  const list = await decodeMrs(bytes);
  if (list.behavior !== behavior)
    throw new ConfigError(`this MRS file holds behavior ${list.behavior}; the provider says ${behavior}`);
  // The file says how many items it was made of; those that cover each other have been joined since.
  if (list.behavior === "ipcidr")
    return { list: networkList(list.items, list.count), skipped: new Skipped() };
  const read = domainList(list.items);
  return { ...read, list: { ...read.list, size: list.count } };
}
