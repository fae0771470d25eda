/** From the content of a proxy provider to nodes: found, filtered, changed as the configuration asks, then read like any other. */
import { Context } from "#config/context.ts";
import type { ProxyConfig } from "#config/config.ts";
import { ProxyReader } from "#config/proxies.ts";
import { Report } from "#config/report.ts";
import type { ProxyProviderConfig } from "#config/sections/index.ts";
import { isMapValue } from "#config/shape.ts";
import { readYaml } from "#config/yaml.ts";
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { GROUP_KINDS } from "#groups/index.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { readLinks } from "#protocols/share-links/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { shapeNodes, textField, type RawNode } from "./node-overrides.ts";

const REGISTRIES = { protocols: PROTOCOLS, groupKinds: GROUP_KINDS, ruleTypes: RULE_TYPES };

/** Subscriptions of thousands of nodes are a few hundred KiB (share-link sheet §5). */
const MOST_BYTES = 8 * 1024 * 1024;

/** Throws `ConfigError`: one bad node refuses the whole content, so that half a list never replaces a whole one. */
export function readNodes(
  bytes: Uint8Array,
  config: ProxyProviderConfig,
  files: Pick<SafeFiles, "resolve">,
): readonly ProxyConfig[] {
  if (bytes.length > MOST_BYTES) throw new ConfigError(`the content is larger than ${MOST_BYTES} bytes`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
  return readRawNodes(contentOf(text), config, files);
}

export function readRawNodes(
  items: readonly unknown[],
  config: ProxyProviderConfig,
  files: Pick<SafeFiles, "resolve">,
): readonly ProxyConfig[] {
  const nodes = shapeNodes(withoutDuplicates(items.filter(isNode)), config);
  if (nodes.length === 0)
    throw new ConfigError(
      items.length === 0
        ? "the content has no nodes"
        : `none of its ${items.length} nodes is left by the filters`,
    );
  const report = new Report(() => ({ line: 1, column: 1 }));
  const reader = new ProxyReader(new Context(report, REGISTRIES, files));
  const { proxies } = reader.readAll(nodes, ["proxies"], "proxy", new Set());
  const [fault] = report.errors;
  if (fault !== undefined) throw new ConfigError(fault.message.replace(/^proxy (\d+):/, "proxy $1 error:"));
  return proxies.map(({ proxy }) => proxy);
}

const HAS_PROXIES = /^[ \t]*(?:\{\s*)?["']?proxies["']?\s*:/m;

function contentOf(text: string): readonly unknown[] {
  if (HAS_PROXIES.test(text)) return yamlNodes(text);
  const links = readLinks(text);
  if (links !== null) return links.items;
  if (/^\s*<(?:!doctype|html)/i.test(text.slice(0, 200)))
    throw new ConfigError("the content is an HTML page, not a list of nodes");
  throw new ConfigError("the content has neither the key proxies nor share links");
}

function yamlNodes(text: string): readonly unknown[] {
  const { root, faults } = readYaml(text);
  const [fault] = faults;
  if (fault !== undefined) throw new ConfigError(fault.message);
  const proxies = root?.["proxies"];
  if (!Array.isArray(proxies)) throw new ConfigError("proxies: expected a list");
  return proxies as unknown[];
}

/** What has no name or type is passed over. */
function isNode(item: unknown): item is RawNode {
  return isMapValue(item) && textField(item, "name") !== "" && textField(item, "type") !== "";
}

/** The first of a name counts. */
function withoutDuplicates(nodes: readonly RawNode[]): readonly RawNode[] {
  const seen = new Set<string>();
  return nodes.filter((node) => {
    const name = textField(node, "name");
    return !seen.has(name) && seen.add(name);
  });
}
