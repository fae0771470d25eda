/** Nodes and groups: whether they work, how fast, and which member is chosen. */
import type { Control, ProxyView } from "#core/control.ts";
import { gauges, type MetricRegistry, type Sample } from "./read.ts";

/** Built in, and never tested: they would only make it look as if something worked. */
const BUILT_IN: ReadonlySet<string> = new Set([
  "Direct",
  "Reject",
  "RejectDrop",
  "Pass",
  "PassRule",
  "Compatible",
]);

/** More would be too much for one answer; the rest is left out, those of the file come first. */
const MOST_NODES = 5_000;

interface Node {
  readonly view: ProxyView;
  /** "" for one of the file. */
  readonly provider: string;
}

export function nodeMetrics(registry: MetricRegistry, control: Control): void {
  const labels = ["node", "provider"] as const;
  const labelsOf = ({ view, provider }: Node) => ({ node: view.name, provider });
  gauges(registry, {
    name: "weir_node_alive",
    help: "1 unless the last delay test failed",
    labels,
    read: () => sample(nodes(control), (node) => [labelsOf(node), Number(node.view.alive)]),
  });
  gauges(registry, {
    name: "weir_node_delay_seconds",
    help: "Result of the last delay test that went well; absent before one",
    labels,
    read: () =>
      sample(nodes(control), (node) => {
        const last = node.view.history.findLast(({ delayMs }) => delayMs > 0);
        return last === undefined ? null : [labelsOf(node), last.delayMs / 1000];
      }),
  });
  gauges(registry, {
    name: "weir_node_unavailable",
    help: "1 for nodes that cannot be dialled at all, and groups that lead to such",
    labels,
    read: () =>
      sample(nodes(control), (node) => (node.view.unavailable === null ? null : [labelsOf(node), 1])),
  });
  gauges(registry, {
    name: "weir_group_selected",
    help: "1 for the member that a group uses now",
    labels: ["group", "member"],
    read: () =>
      sample(control.proxies.list(), ({ name, group }) => {
        const member = group?.now ?? null;
        return member === null ? null : [{ group: name, member }, 1];
      }),
  });
}

function* nodes({ proxies, proxyProviders }: Control): Generator<Node> {
  let left = MOST_NODES;
  for (const view of proxies.list())
    if (view.group === null && !BUILT_IN.has(view.type) && left-- > 0) yield { view, provider: "" };
  for (const { name, vehicleType, proxies: views } of proxyProviders.list()) {
    if (vehicleType === "Compatible") continue; // groups of the file as providers: their nodes have been shown
    for (const view of views) if (left-- > 0) yield { view, provider: name };
  }
}

function* sample<T, L extends string>(
  items: Iterable<T>,
  read: (item: T) => Sample<L> | null,
): Generator<Sample<L>> {
  for (const item of items) {
    const found = read(item);
    if (found !== null) yield found;
  }
}
