/** Share links of this node's listeners, as other nodes put them into subscriptions. */
import type { ManagedInbound } from "#core/inbound.ts";
import type { ServingNode, UserRegistry } from "#users/user-registry.ts";
import { nodeLinkOf } from "#users/views.ts";
import type { FleetNode } from "./nodes.ts";

/** By listener and flow, with a made up credential. */
export function ownLinks(
  registry: UserRegistry,
  address: string,
  inbounds: Iterable<ManagedInbound>,
): ServingNode["links"] {
  const opened = [...inbounds];
  const links: Record<string, Record<string, string>> = {};
  for (const listener of registry.listeners.values()) {
    const { support, name } = listener;
    const endpoints = opened.findLast((inbound) => inbound.name === name)?.endpoints ?? [];
    const byFlow: Record<string, string> = {};
    for (const flow of ["", ...support.flows]) {
      const user = { name: "user", credential: support.makeCredential(), flow };
      const link = nodeLinkOf(listener, address, endpoints, user);
      if (link !== null) byFlow[flow] = link;
    }
    if (Object.keys(byFlow).length > 0) links[name] = byFlow;
  }
  return links;
}

/** Those that serve clients, by their labels, then by name. */
export function servingNodes(nodes: readonly FleetNode[]): readonly ServingNode[] {
  return nodes
    .filter(({ state }) => state === "live" || state === "late")
    .map(({ name, labels, links }) => ({ node: name, links, order: `${labelText(labels)}\n${name}` }))
    .sort((a, b) => (a.order < b.order ? -1 : 1))
    .map(({ node, links }) => ({ node, links }));
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(",");
}
