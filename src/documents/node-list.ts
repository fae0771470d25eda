/** From the bytes of a proxy provider to its nodes as they are written: a list in YAML, or share links. */
import { isMapValue } from "#config/shape.ts";
import { readYaml } from "#config/yaml.ts";
import { ConfigError } from "#core/errors.ts";
import { Plain } from "#core/fields.ts";
import type { Slices } from "#core/slices.ts";
import type { Locate } from "#config/report.ts";
import { readLinks } from "#protocols/share-links/index.ts";

/** Subscriptions of thousands of nodes are a few hundred KiB (share-link sheet §5). */
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
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
  const content = contentOf(text);
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

/** A content that can cross to another thread; of the places those of whole nodes are kept. */
export interface PackedContent {
  readonly nodes: readonly Packed[];
  /** Line and column of each. */
  readonly places: Uint32Array;
  readonly skipped: string | null;
}

export function packContent({ items, locate, skipped }: Content): PackedContent {
  const places = items.flatMap((_, at) => {
    const { line, column } = locate(["proxies", at], "value");
    return [line, column];
  });
  return { nodes: items.map(pack), places: Uint32Array.from(places), skipped };
}

export async function unpackContent(
  { nodes, places, skipped }: PackedContent,
  slices: Slices,
): Promise<Content> {
  const locate: Locate = ([, at]) => {
    const [line = 1, column = 1] = places.subarray(Number(at) * 2);
    return { line, column };
  };
  const items: unknown[] = [];
  for (const node of nodes) {
    await slices.pause();
    items.push(unpack(node));
  }
  return { items, locate, skipped };
}

/** Text in quotes, as it crosses to another thread: a class such as `Plain` would not, so unquoted text is the string. */
interface Quoted {
  readonly text: string;
}

/** A value of a list of nodes that can cross to another thread. */
type Packed =
  | string
  | number
  | boolean
  | undefined
  | Quoted
  | readonly Packed[]
  | ReadonlyMap<string, Packed>;

function pack(value: unknown): Packed {
  if (value instanceof Plain) return value.source;
  if (typeof value === "string") return { text: value };
  if (Array.isArray(value)) return value.map(pack);
  if (isMapValue(value)) return new Map(Object.entries(value).map(([key, item]) => [key, pack(item)]));
  return typeof value === "number" || typeof value === "boolean" ? value : undefined;
}

function unpack(packed: Packed): unknown {
  if (typeof packed === "string") return new Plain(packed);
  if (typeof packed !== "object") return packed;
  if (packed instanceof Map) {
    const map = Object.create(null) as Record<string, unknown>;
    for (const [key, item] of packed as ReadonlyMap<string, Packed>) map[key] = unpack(item);
    return map;
  }
  return "text" in packed ? packed.text : (packed as readonly Packed[]).map(unpack);
}
