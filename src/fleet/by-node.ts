/** What users have and do on each node, as the database has it. */
import type { Client } from "pg";
import type { HourAt, OnlineAt, OnNode } from "#core/fleet.ts";
import type { Ip } from "#core/session.ts";
import { summed } from "./schema/ceilings.ts";

/** Connections of a user by node. */
export type Online = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** By user, of all other nodes. Rejects as the driver does. */
export async function fetchOnline(client: Client, selfId: string): Promise<Online> {
  const { rows } = await client.query<{ user_id: string; node_name: string; connections: number }>(
    "SELECT * FROM weir.online($1)",
    [selfId],
  );
  const online = new Map<string, Map<string, number>>();
  for (const { user_id: id, node_name: node, connections } of rows) {
    const nodes = online.get(id) ?? new Map<string, number>();
    online.set(id, nodes.set(node, connections));
  }
  return online;
}

/** Of one user, on other nodes. Rejects as the driver does. */
export async function fetchAddresses(
  client: Client,
  userId: string,
  { selfId, nowMs }: { readonly selfId: string; readonly nowMs: number },
): Promise<readonly OnlineAt[]> {
  const { rows } = await client.query<{ name: string; ip: Ip; connections: number; age_ms: number }>(
    `SELECT n.name, s.ip, s.connections, extract(epoch FROM clock_timestamp() - s.seen_at)::float8 * 1000 AS age_ms
     FROM weir.slot s JOIN weir.node n ON n.id = s.node_id AND n.epoch = s.epoch
     WHERE s.user_id = $1 AND n.id <> $2 AND n.seen_at > clock_timestamp() - interval '30 s'
     ORDER BY s.since, s.ip`,
    [userId, selfId],
  );
  return rows.map(({ name, ip, connections, age_ms: ageMs }) => ({
    node: name,
    ip,
    connections,
    lastSeenMs: Math.trunc(nowMs - ageMs),
  }));
}

/** Of one user, in the last day, also from before the counters were set back. Rejects as the driver does. */
export async function fetchHours(client: Client, userId: string): Promise<readonly HourAt[]> {
  const { rows } = await client.query<{ node: string; hour: Date; upload: string; download: string }>(
    `SELECT coalesce(n.name, h.node_id::text) AS node, h.hour,
       ${summed("sum(h.upload)")} AS upload, ${summed("sum(h.download)")} AS download
     FROM weir.usage_hour h
     JOIN weir.app_user u ON u.id = h.user_id
     LEFT JOIN weir.node n ON n.id = h.node_id
     WHERE h.user_id = $1 AND h.hour > clock_timestamp() - interval '24 hours'
     GROUP BY 1, 2 ORDER BY 2, 1`,
    [userId],
  );
  return rows.map(({ node, hour, upload, download }) => ({
    node,
    startMs: hour.getTime(),
    uploadBytes: Number(upload),
    downloadBytes: Number(download),
  }));
}

/** By user, of one or of all; `online` adds connections. Rejects as the driver does. */
export async function fetchMoved(
  client: Client,
  userId: string | null,
  online: Online,
): Promise<ReadonlyMap<string, readonly OnNode[]>> {
  const { rows } = await client.query<{
    user_id: string;
    node_name: string;
    upload: string;
    download: string;
  }>("SELECT * FROM weir.moved($1) ORDER BY node_name", [userId]);
  const moved = new Map<string, OnNode[]>();
  const add = (id: string, one: OnNode): void => {
    moved.set(id, [...(moved.get(id) ?? []), one]);
  };
  for (const { user_id: id, node_name: node, upload, download } of rows)
    add(id, {
      node,
      uploadBytes: Number(upload),
      downloadBytes: Number(download),
      connections: online.get(id)?.get(node) ?? 0,
    });
  for (const [id, nodes] of online) {
    if (userId !== null && id !== userId) continue;
    const known = new Set(moved.get(id)?.map(({ node }) => node));
    for (const [node, connections] of nodes)
      if (!known.has(node)) add(id, { node, uploadBytes: 0, downloadBytes: 0, connections });
  }
  return moved;
}
