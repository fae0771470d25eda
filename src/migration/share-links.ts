/** A list of share links, a line each, or base64 of that, as the nodes of a client's configuration. */
import { ConfigError } from "#core/errors.ts";
import type { Protocol } from "#core/protocol.ts";
import type { LinkNode } from "#core/share-link.ts";
import { shown, type Imported, type LeftOut } from "./imported.ts";
import { Ways } from "./ways.ts";

const PROBE_URL = "https://www.gstatic.com/generate_204";
const GROUP = "Proxy";
const FASTEST = "Fastest";

interface Source {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly links: LinkReader;
}

export interface LinkReader {
  /** Throws `ConfigError`, which never shows the link. */
  parse(line: string): LinkNode;
  /** Null: the text is no base64. */
  decode(text: string): string | null;
}

/** Throws `ConfigError` where there is no link that can be used. */
export function readShareLinks(text: string, file: string, { protocols, report, links }: Source): Imported {
  const spoken = new Set(protocols.flatMap(({ type, outbound }) => (outbound === undefined ? [] : [type])));
  const body = text.trim();
  const plain = body.includes("://") ? text : (links.decode(body) ?? "");
  const ways = new Ways(report);
  const group = ways.claim("", GROUP, file);
  const fastest = ways.claim("", FASTEST, file);
  const names: string[] = [];
  for (const [at, line] of plain.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const where = `line ${at + 1}`;
    const node = nodeOf(line, where, { links, report });
    if (node === null) continue;
    const type = String(node["type"]);
    if (!spoken.has(type)) {
      report.add(where, `${shown(type)} is not spoken; the node is left out`);
      continue;
    }
    const name = ways.claim(String(node["name"]), `node-${at + 1}`, where);
    names.push(name);
    ways.add({ ...node, name });
  }
  if (names.length === 0) throw new ConfigError(`${file}: there is no share link that can be used`);
  ways.addGroup({ name: group, type: "select", proxies: [fastest, ...names, "DIRECT"] });
  ways.addGroup({ name: fastest, type: "url-test", proxies: names, url: PROBE_URL, interval: 300 });
  return { listeners: [], rules: [`MATCH,${group}`], keys: { "mixed-port": 7890, ...ways.keys() } };
}

/** Null where the line is no link; the report says why and never shows it: it holds a secret. */
function nodeOf(
  line: string,
  where: string,
  { links, report }: Pick<Source, "links" | "report">,
): LinkNode | null {
  try {
    return links.parse(line);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    report.add(where, `${error.message}; it is left out`);
    return null;
  }
}
