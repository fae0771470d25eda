/** A fleet, as the node that is asked has last seen it. */
import type { FleetAdmin, FleetCounts, FleetNodeView } from "#core/fleet.ts";
import { gauges, type MetricRegistry, type Sample, totals } from "./read.ts";

type Fleet = () => FleetAdmin | null;

export function fleetMetrics(registry: MetricRegistry, fleet: Fleet): void {
  ownMetrics(registry, fleet);
  const each = (read: (node: FleetNodeView) => number) => (): readonly Sample<"node">[] =>
    nodesOf(fleet).map((node) => [{ node: node.name }, read(node)]);
  gauges(registry, {
    name: "weir_fleet_database_up",
    help: "1 while the fleet's database answers this node, else 0",
    labels: [],
    read: () => {
      const seen = fleet()?.seen;
      return seen === undefined ? [] : [[{}, seen.database.isUp ? 1 : 0]];
    },
  });
  gauges(registry, {
    name: "weir_fleet_node_state",
    help: "1 for the state that a node of the fleet is in",
    labels: ["node", "state"],
    read: () => nodesOf(fleet).map(({ name, state }) => [{ node: name, state }, 1]),
  });
  gauges(registry, {
    name: "weir_fleet_node_seen_timestamp_seconds",
    help: "When a node was last seen, by the database's clock",
    labels: ["node"],
    read: each(({ seenAtMs }) => seenAtMs / 1000),
  });
  gauges(registry, {
    name: "weir_fleet_node_lag_changes",
    help: "Changes of users that a node has not applied",
    labels: ["node"],
    read: each(({ lagChanges }) => lagChanges),
  });
  gauges(registry, {
    name: "weir_fleet_node_lag_seconds",
    help: "Age of the oldest change that a node has not applied",
    labels: ["node"],
    read: each(({ lagMs }) => lagMs / 1000),
  });
  gauges(registry, {
    name: "weir_fleet_node_unacknowledged",
    help: "Ledger entries of a node that the database has not acknowledged",
    labels: ["node"],
    read: each(({ unacknowledged }) => unacknowledged),
  });
}

/** What the node that is asked has and does. */
function ownMetrics(registry: MetricRegistry, fleet: Fleet): void {
  const count =
    (key: keyof FleetCounts, factor = 1) =>
    (): readonly Sample<never>[] => {
      const counts = fleet()?.counts;
      return counts === undefined ? [] : [[{}, counts[key] * factor]];
    };
  gauges(registry, {
    name: "weir_fleet_leases",
    help: "Users of whose quotas this node may spend a part",
    labels: [],
    read: count("leases"),
  });
  gauges(registry, {
    name: "weir_fleet_leased_bytes",
    help: "What this node may spend of quotas and counts as spent elsewhere",
    labels: [],
    read: count("lentBytes"),
  });
  gauges(registry, {
    name: "weir_fleet_slots",
    help: "Addresses of users online here, as the database has them",
    labels: [],
    read: count("slots"),
  });
  totals(registry, {
    name: "weir_fleet_database_statements_total",
    help: "Statements and groups of statements that this node has asked for",
    labels: [],
    read: count("statements"),
  });
  totals(registry, {
    name: "weir_fleet_database_errors_total",
    help: "Those of them that failed, or found no connection",
    labels: [],
    read: count("errors"),
  });
  totals(registry, {
    name: "weir_fleet_database_seconds_total",
    help: "Time that they took",
    labels: [],
    read: count("milliseconds", 0.001),
  });
}

function nodesOf(fleet: Fleet): readonly FleetNodeView[] {
  return fleet()?.seen.nodes ?? [];
}
