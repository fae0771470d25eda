/** Groups and nodes as the page shows them. */
import type { Proxy, ProxyProvider } from "#ui/api/types.ts";

export interface Nodes {
  readonly groups: readonly Proxy[];
  readonly byName: ReadonlyMap<string, Proxy>;
  /** Provider of the nodes that come from one. */
  readonly providerOf: ReadonlyMap<string, string>;
}

export function nodesOf(
  proxies: Readonly<Record<string, Proxy>>,
  providers: readonly ProxyProvider[],
): Nodes {
  const byName = new Map(Object.entries(proxies));
  const providerOf = new Map<string, string>();
  for (const { name: provider, proxies: nodes } of realProviders(providers))
    for (const node of nodes) {
      if (byName.has(node.name)) continue;
      byName.set(node.name, node);
      providerOf.set(node.name, provider);
    }
  const order = byName.get("GLOBAL")?.all ?? [];
  const place = new Map(order.map((name, at) => [name, at]));
  const placeOf = ({ name }: Proxy): number =>
    name === "GLOBAL" ? Infinity : (place.get(name) ?? order.length);
  const groups = Object.values(proxies)
    .filter((proxy) => proxy.all !== undefined && proxy.hidden !== true)
    .toSorted((a, b) => (placeOf(a) === placeOf(b) ? 0 : placeOf(a) - placeOf(b)));
  return { groups, byName, providerOf };
}

/** The others only repeat what groups hold. */
export function realProviders(providers: readonly ProxyProvider[]): readonly ProxyProvider[] {
  return providers.filter(({ vehicleType }) => vehicleType !== "Compatible");
}

/** Of the last test: by the group's own URL where there was one, else any. Null: never; 0: failed. */
export function lastDelay(proxy: Proxy | undefined, testUrl: string): number | null {
  const history = proxy?.extra[testUrl]?.history ?? proxy?.history ?? [];
  return history.at(-1)?.delay ?? null;
}

/** Does a person pick the member? */
export const isSelectable = ({ type }: Proxy): boolean => ["Selector", "URLTest", "Fallback"].includes(type);
