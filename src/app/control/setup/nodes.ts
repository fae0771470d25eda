import type { JsonValue, LinkedNodes } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";
import { readLinks } from "#protocols/share-links/index.ts";

/** `taken`: names that are in use. Throws `ConfigError`. */
export function nodesOfText(text: string, taken: ReadonlySet<string>): LinkedNodes {
  const links = readLinks(text);
  if (links === null || links.items.length === 0)
    throw new ConfigError(links?.firstSkipped?.why ?? "expected share links, one a line");
  const used = new Set(taken);
  const nodes = links.items.map((item) => {
    const name = freeName(String(item["name"]), used);
    used.add(name);
    return jsonOf({ ...item, name });
  });
  return { nodes, skipped: links.skipped };
}

function freeName(wanted: string, used: ReadonlySet<string>): string {
  let name = wanted;
  for (let count = 2; used.has(name); count++) name = `${wanted} ${count}`;
  return name;
}

/** Nodes are plain data: what a link has no word for is left out. */
function jsonOf(item: object): Readonly<Record<string, JsonValue>> {
  const copy: Readonly<Record<string, JsonValue>> = JSON.parse(JSON.stringify(item));
  return copy;
}
