/** A fleet, as the node that is asked has last seen it. */
import type { FleetAdmin, FleetNodeView } from "#core/fleet.ts";
import { gauges, type MetricRegistry, type Sample } from "./read.ts";

type Fleet = () => FleetAdmin | null;

export function fleetMetrics(registry: MetricRegistry, fleet: Fleet): void {
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

function nodesOf(fleet: Fleet): readonly FleetNodeView[] {
  return fleet()?.seen.nodes ?? [];
}
