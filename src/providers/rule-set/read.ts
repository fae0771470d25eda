/** From the bytes of a rule list to something that matches. */
import { ConfigError } from "#core/errors.ts";
import { cidrContents, domainContents, networkData, Skipped, type Contents } from "./contents.ts";
import { textItems, yamlItems } from "./lines.ts";
import { decodeMrs } from "./mrs.ts";

export type Behavior = "domain" | "ipcidr" | "classical";
export type Format = "yaml" | "text" | "mrs";

/** Makes one condition of each line `TYPE,payload[,params]`; given by who knows the rule types. */
export type ReadClassical = (items: readonly string[]) => Contents;

export interface ListKind {
  readonly behavior: Behavior;
  readonly format: Format;
}

/** Throws `ConfigError` or `ProtocolError`: then nothing of it can be used. */
export async function readRuleSet(
  bytes: Uint8Array,
  { behavior, format }: ListKind,
  classical: ReadClassical,
): Promise<Contents> {
  if (format === "mrs") return readMrs(bytes, behavior);
  const items = itemsOf(bytes, format);
  const contents = contentsOf(items, behavior, classical);
  if (items.length > 0 && contents.data.size === 0)
    throw new ConfigError(
      `none of its ${items.length} items is of behavior ${behavior}: ${contents.skipped.first}`,
    );
  return contents;
}

/** The lines of a list in text form. */
export function itemsOf(bytes: Uint8Array, format: "yaml" | "text"): string[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
  if (/^\s*<(?:!doctype|html)/i.test(text.slice(0, 200)))
    throw new ConfigError("this is an HTML page, not a rule list");
  return format === "yaml" ? yamlItems(text) : textItems(text);
}

export function contentsOf(items: readonly string[], behavior: Behavior, classical: ReadClassical): Contents {
  if (behavior === "domain") return domainContents(items);
  return behavior === "ipcidr" ? cidrContents(items) : classical(items);
}

async function readMrs(bytes: Uint8Array, behavior: Behavior): Promise<Contents> {
  const list = await decodeMrs(bytes);
  if (list.behavior !== behavior)
    throw new ConfigError(`this MRS file holds behavior ${list.behavior}; the provider says ${behavior}`);
  // The file says how many items it was made of; those that cover each other have been joined since.
  if (list.behavior === "ipcidr")
    return { data: networkData(list.items, list.count), skipped: new Skipped() };
  const { data, skipped } = domainContents(list.items);
  return { data: { ...data, size: list.count }, skipped };
}
