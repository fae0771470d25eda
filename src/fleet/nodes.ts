/** The nodes of a fleet, as the database has them. */
import type { ClientBase } from "pg";
import * as z from "zod";
import type { FleetNodeView, NodeState } from "#core/fleet.ts";

const LATE_MS = 15_000;
const LOST_MS = 60_000;
/** Changes of one listener, counted for each node: a login may say of a thousand nodes that they have none of them. */
const MOST_LAG = 1000;

interface NodeRow {
  readonly id: string;
  readonly name: string;
  readonly address: string;
  readonly labels: unknown;
  readonly version: string;
  readonly epoch: string;
  readonly seen_ms: number;
  readonly age_ms: number;
  readonly draining: boolean;
  readonly applied: unknown;
  readonly links: unknown;
  readonly stats: unknown;
  readonly connections: number;
  readonly lag_changes: number;
  readonly lag_ms: number;
}

/** What nodes show of each other, and what subscriptions need. */
export interface FleetNode extends FleetNodeView {
  readonly id: string;
  /** By listener and flow. */
  readonly links: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** What a node says of itself, as far as it makes sense: its login may write anything there, and all others read it. */
const texts = z.record(z.string(), z.string()).catch({});
const counts = z.record(z.string(), z.int().nonnegative()).catch({});
const textsByName = z.record(z.string(), texts).catch({});

const NODES = `
  SELECT n.id, n.name, n.address, n.labels, n.version, n.epoch, n.applied, n.stats, n.connections, n.draining,
    extract(epoch FROM n.seen_at)::float8 * 1000 AS seen_ms,
    extract(epoch FROM clock_timestamp() - n.seen_at)::float8 * 1000 AS age_ms,
    (SELECT jsonb_object_agg(l.listener, l.links) FROM weir.link l WHERE l.node_id = n.id) AS links,
    coalesce(lag.changes, 0)::integer AS lag_changes, coalesce(lag.ms, 0)::float8 AS lag_ms
  FROM weir.node n
  LEFT JOIN LATERAL (
    SELECT sum(behind.changes) AS changes, extract(epoch FROM clock_timestamp() - min(behind.at)) * 1000 AS ms
    FROM jsonb_each(CASE jsonb_typeof(n.applied) WHEN 'object' THEN n.applied ELSE '{}' END) a
    CROSS JOIN LATERAL (
      SELECT count(*) AS changes, min(c.at) AS at FROM (
        SELECT at FROM weir.change WHERE listener = a.key AND revision > CASE jsonb_typeof(a.value) WHEN 'number' THEN
          least(greatest(a.value::numeric, 0), 9007199254740991)::bigint END
        ORDER BY revision LIMIT ${MOST_LAG}) c
    ) behind
  ) lag ON true
  ORDER BY n.name`;

/** Sorted by name. Rejects as the driver does. */
export async function fetchNodes(client: ClientBase, selfId: string): Promise<readonly FleetNode[]> {
  const { rows } = await client.query<NodeRow>(NODES);
  return rows.map((row) => nodeOf(row, selfId));
}

function nodeOf(row: NodeRow, selfId: string): FleetNode {
  const stats = counts.parse(row.stats);
  return {
    id: row.id,
    name: row.name,
    address: row.address,
    labels: texts.parse(row.labels),
    version: row.version,
    epoch: Number(row.epoch),
    seenAtMs: Math.trunc(row.seen_ms),
    state: stateOf(row),
    isSelf: row.id === selfId,
    lagChanges: row.lag_changes,
    lagMs: Math.max(0, Math.round(row.lag_ms)),
    connections: row.connections,
    uploadBytes: stats["upload"] ?? 0,
    downloadBytes: stats["download"] ?? 0,
    unacknowledged: stats["unacknowledged"] ?? 0,
    applied: counts.parse(row.applied),
    uploadTotalBytes: stats["upload_total"] ?? 0,
    downloadTotalBytes: stats["download_total"] ?? 0,
    links: textsByName.parse(row.links),
  };
}

function stateOf({ age_ms, draining }: NodeRow): NodeState {
  if (age_ms >= LOST_MS) return "lost";
  if (draining) return "draining";
  return age_ms >= LATE_MS ? "late" : "live";
}
