/** Share links and the bodies of subscriptions: nodes as text that clients exchange. */
import { ConfigError, messageOf } from "#core/errors.ts";
import type { ClientForms, LinkNode, SingBoxOutbound } from "#core/share-link.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { decodeBase64, splitLink } from "#protocols/shared/links/grammar.ts";
import { foreignNode } from "./foreign.ts";

/** Every protocol of the registry that has links, with the type of its nodes. */
const FORMS = PROTOCOLS.flatMap(({ type, links }) => (links === undefined ? [] : [{ ...links, type }]));

/** Longer lines are no links. */
const LONGEST_LINE = 64 * 1024;

export interface Links {
  /** With names that differ: the second of a name gets `-01`. */
  readonly items: readonly LinkNode[];
  /** The line of each item, from 1; empty where the text has no lines. */
  readonly lines: readonly number[];
  /** Lines that are not well-formed links. */
  readonly skipped: number;
  /** Why the first of them is none; null: there is none. */
  readonly firstSkipped: { readonly line: number; readonly why: string } | null;
}

/** One link. Throws `ConfigError`, which never shows it. */
export function parseLink(line: string): LinkNode {
  const link = line.trim();
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(link)?.[1]?.toLowerCase() ?? "";
  if (link.length > LONGEST_LINE) throw new ConfigError("the link is too long");
  const known = FORMS.find(({ schemes }) => schemes.includes(scheme));
  if (known !== undefined) return known.read(splitLink(link));
  const foreign = foreignNode(scheme, link);
  if (foreign !== null) return foreign;
  throw new ConfigError(`links of the scheme ${JSON.stringify(scheme.slice(0, 20))} cannot be read`);
}

/** The link of a node; null for types that have none. */
export function renderLink(node: LinkNode): string | null {
  if (node["server"] === undefined) return null; // several servers, or none: no link holds that
  return FORMS.find(({ type }) => type === node["type"])?.write(node) ?? null;
}

/** A link as a node, and as profiles of other programs have it. Throws `ConfigError`, which never shows the link. */
export function clientForms(link: string): ClientForms {
  const node = parseLink(link);
  return { node, mihomo: isOfMihomo(node) ? node : null, singBox: singBoxOutbound(node) };
}

function isOfMihomo(node: LinkNode): boolean {
  return PROTOCOLS.find(({ type }) => type === node["type"])?.isOfMihomo?.(node) ?? true;
}

/** Null for nodes that sing-box has no outbound for. */
export function singBoxOutbound(node: LinkNode): SingBoxOutbound | null {
  return PROTOCOLS.find(({ type }) => type === node["type"])?.singBox?.(node) ?? null;
}

/** One link a line, base64 of that, or a document of nodes such as SIP008; null where the text is none of them. */
export function readLinks(text: string): Links | null {
  const body = text.trim();
  const plain = body.includes("://") ? body : decodeBase64(body);
  if (plain !== null && plain.includes("://") && !plain.startsWith("{")) return readLines(plain);
  for (const { readDocument } of FORMS) {
    const items = readDocument?.(body) ?? null;
    if (items !== null) return { items: withOwnNames(items), lines: [], skipped: 0, firstSkipped: null };
  }
  return null;
}

function readLines(text: string): Links {
  const items: LinkNode[] = [];
  const lines: number[] = [];
  let skipped = 0;
  let firstSkipped: Links["firstSkipped"] = null;
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    try {
      items.push(parseLink(line));
      lines.push(at + 1);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw new Error(messageOf(error), { cause: error });
      skipped++;
      firstSkipped ??= { line: at + 1, why: error.message };
    }
  }
  return { items: withOwnNames(items), lines, skipped, firstSkipped };
}

function withOwnNames(items: readonly LinkNode[]): LinkNode[] {
  const taken = new Set<string>();
  const counts = new Map<string, number>(); // the next number of a name, so that 16,000 of one name do not count anew each
  return items.map((item) => {
    const wanted = String(item["name"]);
    let name = wanted;
    let count = counts.get(wanted) ?? 1;
    while (taken.has(name)) name = `${wanted}-${String(count++).padStart(2, "0")}`;
    counts.set(wanted, count);
    taken.add(name);
    return { ...item, name };
  });
}
