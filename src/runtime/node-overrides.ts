/** What a proxy provider does to its nodes before they are read: filters, overrides, names. */
import { peek } from "#config/items.ts";
import { fold } from "#config/shape.ts";
import type { ProxyProviderConfig } from "#config/sections/index.ts";
import type { Steps } from "#lib/steps.ts";
import { compilePattern } from "#lib/wildcard-pattern.ts";

export type RawNode = Readonly<Record<string, unknown>>;

/** A node and the number of the item that it was. */
export interface PlacedNode {
  readonly node: RawNode;
  readonly at: number;
}

/** "" where the field is absent or no text. */
export function textField(node: unknown, key: string): string {
  return peek(node, key, "hyphen") ?? "";
}

/** What the filters leave, in their order. */
export function* filterNodes(
  nodes: readonly PlacedNode[],
  { filter, excludeFilter, excludeType }: ProxyProviderConfig,
): Steps<readonly PlacedNode[]> {
  const excludes = patternsOf(excludeFilter);
  const types = new Set(
    excludeType
      .toLowerCase()
      .split("|")
      .map((type) => type.trim()),
  );
  const kept: PlacedNode[] = [];
  for (const placed of nodes) {
    yield;
    if (types.has(textField(placed.node, "type").toLowerCase())) continue;
    const name = textField(placed.node, "name");
    if (!excludes.some((pattern) => pattern.test(name))) kept.push(placed);
  }
  const filters = patternsOf(filter);
  if (filters.length === 0) return kept;
  const chosen = new Set<PlacedNode>();
  for (const pattern of filters)
    for (const placed of kept) {
      yield;
      if (pattern.test(textField(placed.node, "name"))) chosen.add(placed);
    }
  return [...chosen];
}

/** Several expressions are joined by a backtick. */
function patternsOf(text: string): readonly RegExp[] {
  return text === "" ? [] : text.split("`").map((part) => compilePattern(part));
}

/** The node with the overrides that its type knows; then replacements in its name, prefix, suffix. */
export function overrideNode(
  node: RawNode,
  { override, dialerProxy }: ProxyProviderConfig,
  knows: (type: string, key: string) => boolean,
): RawNode {
  const type = textField(node, "type");
  const fields: Readonly<Record<string, unknown>> = {
    tfo: override.tfo,
    mptcp: override.mptcp,
    udp: override.udp,
    "udp-over-tcp": override.udpOverTcp,
    up: override.up,
    down: override.down,
    "dialer-proxy": override.dialerProxy ?? (dialerProxy || null),
    "skip-cert-verify": override.skipCertVerify,
    "name-cert-verify": override.nameCertVerify,
    "interface-name": override.interfaceName,
    "routing-mark": override.routingMark,
    "ip-version": override.ipVersion,
  };
  const set = Object.entries(fields).filter(([key, value]) => value !== null && knows(type, key));
  const replaced = new Set([...set.map(([key]) => key), "name"]);
  const rest = Object.entries(node).filter(([key]) => !replaced.has(fold(key, "hyphen")));
  return Object.fromEntries([...rest, ...set, ["name", nameOf(node, override)]]);
}

function nameOf(node: RawNode, override: ProxyProviderConfig["override"]): string {
  let name = textField(node, "name");
  for (const { pattern, target } of override.proxyName)
    name = name.replaceAll(compilePattern(pattern, "g"), target);
  return override.additionalPrefix + name + override.additionalSuffix;
}
