/** From the bytes of a proxy provider to its nodes as they are written: a list in YAML, or share links. */
import { readYaml } from "#config/yaml.ts";
import { ConfigError } from "#core/errors.ts";
import type { Slices } from "#core/slices.ts";
import type { Locate } from "#config/report.ts";
import { decodedText } from "#lib/decoded-text.ts";
import { readLinks } from "#protocols/share-links/index.ts";
import { pack, unpack, type PackedValue } from "./packed.ts";

/** Subscriptions of thousands of nodes are a few hundred KiB (share-links.md §5). */
const MOST_BYTES = 8 * 1024 * 1024;
/** Each becomes objects on the main thread. At the bound the content is refused. */
const MOST_NODES = 20_000;

export interface Content {
  readonly items: readonly unknown[];
  /** Takes paths that begin `proxies`, then the number of the item. */
  readonly locate: Locate;
  readonly skipped: string | null;
}

/** Throws `ConfigError` where there is no list. */
export function contentIn(bytes: Uint8Array): Content {
  if (bytes.length > MOST_BYTES) throw new ConfigError(`the content is larger than ${MOST_BYTES} bytes`);
  const content = contentOf(decodedText(bytes));
  const { length } = content.items;
  if (length <= MOST_NODES) return content;
  throw new ConfigError(`the content has ${length} nodes; at most ${MOST_NODES} can be read`);
}

const HAS_PROXIES = /^[ \t]*(?:\{\s*)?["']?proxies["']?\s*:/m;

function contentOf(text: string): Content {
  if (HAS_PROXIES.test(text)) return yamlNodes(text);
  const links = readLinks(text);
  if (links !== null) {
    const { items, lines, skipped, firstSkipped: first } = links;
    return {
      items,
      locate: ([, at]) => ({ line: lines[Number(at)] ?? 1, column: 1 }),
      skipped:
        first === null
          ? null
          : `${skipped} lines are no links; the first is line ${first.line}: ${first.why}`,
    };
  }
  if (/^\s*<(?:!doctype|html)/i.test(text.slice(0, 200)))
    throw new ConfigError("the content is an HTML page, not a list of nodes");
  throw new ConfigError("the content has neither the key proxies nor share links");
}

function yamlNodes(text: string): Content {
  const { root, faults, locate } = readYaml(text);
  const [fault] = faults;
  if (fault !== undefined) throw new ConfigError(fault.message);
  const proxies = root?.["proxies"];
  if (!Array.isArray(proxies)) throw new ConfigError("proxies: expected a list");
  return { items: proxies as unknown[], locate, skipped: null };
}

/** A content on its way to another thread; of the places those of whole nodes are kept. */
export interface PackedContent {
  readonly nodes: PackedValue;
  /** Line and column of each. */
  readonly places: Uint32Array<ArrayBuffer>;
  readonly skipped: string | null;
}

export function packContent({ items, locate, skipped }: Content): PackedContent {
  const places = items.flatMap((_, at) => {
    const { line, column } = locate(["proxies", at], "value");
    return [line, column];
  });
  return { nodes: pack(items), places: Uint32Array.from(places), skipped };
}

export async function unpackContent(
  { nodes, places, skipped }: PackedContent,
  slices: Slices,
): Promise<Content> {
  const locate: Locate = ([, at]) => {
    const [line = 1, column = 1] = places.subarray(Number(at) * 2);
    return { line, column };
  };
  return { items: (await unpack(nodes, slices)) as readonly unknown[], locate, skipped };
}
