/** Connections that are open now, and bytes since the start. */
import type { ConnectionView, Control } from "#core/control.ts";
import { gauge, gauges, total, type MetricRegistry, type Sample } from "./read.ts";

export function trafficMetrics(registry: MetricRegistry, { connections }: Control): void {
  gauge(registry, "weir_connections", "Open connections and UDP sessions", () => connections.size);
  total(registry, "weir_upload_bytes_total", "Bytes from clients", () => connections.totals().uploadBytes);
  total(registry, "weir_download_bytes_total", "Bytes to clients", () => connections.totals().downloadBytes);
  gauges(registry, {
    name: "weir_listener_connections",
    help: "Open connections by the listener that they came to",
    labels: ["listener", "network"],
    read: () =>
      countBy(connections.entries(), ({ metadata: { inbound, network } }) => ({
        listener: inbound.name,
        network,
      })),
  });
  gauges(registry, {
    name: "weir_outbound_connections",
    help: "Open connections by the node that they leave through",
    labels: ["outbound"],
    read: () => countBy(connections.entries(), ({ chain }) => ({ outbound: chain.at(-1) ?? "" })),
  });
}

function countBy<L extends string>(
  views: Iterable<ConnectionView>,
  labelsOf: (view: ConnectionView) => Readonly<Record<L, string>>,
): Iterable<Sample<L>> {
  const counts = new Map<string, { labels: Readonly<Record<L, string>>; count: number }>();
  for (const view of views) {
    const labels = labelsOf(view);
    const key = JSON.stringify(labels);
    const entry = counts.get(key);
    if (entry === undefined) counts.set(key, { labels, count: 1 });
    else entry.count++;
  }
  return Array.from(counts.values(), ({ labels, count }) => [labels, count] as const);
}
