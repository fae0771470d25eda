/** From the content of a proxy provider to nodes: found, filtered, changed as the configuration asks, then read like any other. */
import { Context } from "#config/context.ts";
import type { ProxyConfig } from "#config/config.ts";
import { ProxyReader } from "#config/proxies.ts";
import { Report, type Locate, type Diagnostic } from "#config/report.ts";
import type { ProxyProviderConfig } from "#config/sections/index.ts";
import { isMapValue } from "#config/shape.ts";
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Slices } from "#core/slices.ts";
import { GROUP_KINDS } from "#groups/index.ts";
import type { Steps } from "#lib/steps.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import type { Content } from "#documents/node-list.ts";
import { filterNodes, overrideNode, textField, type PlacedNode, type RawNode } from "./node-overrides.ts";

const REGISTRIES = { protocols: PROTOCOLS, groupKinds: GROUP_KINDS, ruleTypes: RULE_TYPES };

/** What the content of a provider holds. */
export interface NodeList {
  /** Also those that cannot be used: they are inert and say why. */
  readonly nodes: readonly ProxyConfig[];
  readonly warnings: readonly Diagnostic[];
  /** Lines that are no links, in one sentence; null: there are none. */
  readonly skipped: string | null;
}

/** The nodes that the configuration itself gives a provider; what is wrong with them was said when it was read. */
export async function readRawNodes(
  items: readonly unknown[],
  config: ProxyProviderConfig,
  files: Pick<SafeFiles, "resolve">,
  slices: Slices,
): Promise<readonly ProxyConfig[]> {
  return (await readItems({ items, locate: NOWHERE, skipped: null }, config, files, slices)).nodes;
}

const NOWHERE: Locate = () => ({ line: 1, column: 1 });

/** Throws `ConfigError` where none of the nodes is left. A bad node costs itself. Thousands are read in slices. */
export async function readItems(
  { items, locate, skipped }: Content,
  config: ProxyProviderConfig,
  files: Pick<SafeFiles, "resolve">,
  slices: Slices,
): Promise<NodeList> {
  const kept = await slices.run(filterNodes(await slices.run(placedNodes(items)), config));
  if (kept.length === 0)
    throw new ConfigError(
      items.length === 0
        ? "the content has no nodes"
        : `none of its ${items.length} nodes is left by the filters`,
    );
  const report = new Report(([list = "", at, ...rest], part) =>
    locate([list, kept[Number(at)]?.at ?? 0, ...rest], part),
  );
  const reader = new ProxyReader(new Context(report, REGISTRIES, files), { tolerant: true });
  const shaped: RawNode[] = [];
  for (const { node } of kept) {
    await slices.pause();
    shaped.push(overrideNode(node, config, (type, key) => reader.knows(type, key)));
  }
  const nodes: ProxyConfig[] = [];
  for (const node of reader.readEach(shaped, ["proxies"], "proxy", new Set(), new Set())) {
    if (node !== null) nodes.push(node);
    await slices.pause();
  }
  return { nodes, warnings: report.warnings, skipped };
}

/** What has a name and a type; the first of a name counts. */
function* placedNodes(items: readonly unknown[]): Steps<readonly PlacedNode[]> {
  const seen = new Set<string>();
  const placed: PlacedNode[] = [];
  for (const [at, node] of items.entries()) {
    yield;
    if (!isNode(node)) continue;
    const name = textField(node, "name");
    if (seen.has(name)) continue;
    seen.add(name);
    placed.push({ node, at });
  }
  return placed;
}

function isNode(item: unknown): item is RawNode {
  return isMapValue(item) && textField(item, "name") !== "" && textField(item, "type") !== "";
}
