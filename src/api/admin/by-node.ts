/** What the admin API shows of a whole fleet: sums over its nodes, and on request the parts. */
import * as z from "zod";
import { amount, unixMs } from "#api/answer-shapes.ts";
import type { FleetAdmin, FleetNodeView, HourAt, OnlineAt, OnNode } from "#core/fleet.ts";
import type { OnlineIp, UsageView, UserAdmin, UserDetailView } from "#core/users.ts";

/** `?by=node`. */
export const byNode = z
  .enum(["node"])
  .optional()
  .meta({ description: "Of a fleet: the part of each node, too" });

const onNode = z.object({
  node: z.string().min(1),
  upload_bytes: amount(),
  download_bytes: amount(),
  active_connections: amount(),
});

/** Of a user: what the totals of the last hours are made of, a second or so behind them. */
export const userNodes = z.array(onNode).optional();

/** Of the overview. */
export const overviewNodes = z
  .array(
    z.object({
      node: z.string().min(1),
      state: z.enum(["live", "late", "lost", "draining"]),
      uplink_total: amount(),
      downlink_total: amount(),
      active_connections: amount(),
    }),
  )
  .optional();

export const usageNodes = z
  .array(
    z.object({
      node: z.string().min(1),
      steps: z.array(z.object({ start: unixMs(), upload_bytes: amount(), download_bytes: amount() })),
    }),
  )
  .optional();

function onNodeJson({ node, uploadBytes, downloadBytes, connections }: OnNode) {
  return {
    node,
    upload_bytes: uploadBytes,
    download_bytes: downloadBytes,
    active_connections: connections,
  };
}

/** Members for each user, by id; empty where they are not asked for, or the database does not answer. */
export async function nodesOfUsers(
  { fleet }: UserAdmin,
  by: "node" | undefined,
  userId: string | null,
): Promise<(id: string) => { readonly nodes?: readonly ReturnType<typeof onNodeJson>[] }> {
  const nodes = fleet === null || by === undefined ? null : await fleet.byNode(userId);
  return (id) => (nodes === null ? {} : { nodes: (nodes.get(id) ?? []).map(onNodeJson) });
}

/** An address on the node that is named; "": on any. */
export interface ShownIp extends OnlineIp {
  readonly node: string;
}

/** Where a user is online on all nodes: an address of several nodes once, unless it is asked for by node. */
export async function onlineOf(
  fleet: FleetAdmin | null,
  { id, online }: UserDetailView,
  by: "node" | undefined,
): Promise<readonly ShownIp[]> {
  const node = fleet?.seen.self ?? "";
  const others = (await fleet?.online(id)) ?? [];
  const all = [...online.map((one): OnlineAt => ({ ...one, node })), ...others];
  if (by === "node" && fleet !== null) return all;
  return Map.groupBy(all, ({ ip }) => ip)
    .values()
    .map((group) => group.reduce(joined))
    .map((one) => ({ ...one, node: "" }))
    .toArray();
}

function joined(a: OnlineAt, b: OnlineAt): OnlineAt {
  const lastSeenMs = Math.max(a.lastSeenMs, b.lastSeenMs);
  return { ...a, connections: a.connections + b.connections, lastSeenMs };
}

const HOUR_SECONDS = 3_600;

/** Of all nodes in hours; null: this node's own steps are all that is known. */
export async function usageOfFleet(
  fleet: FleetAdmin | null,
  id: string,
): Promise<{ readonly whole: UsageView; readonly nodes: ReadonlyMap<string, UsageView> } | null> {
  const hours = (await fleet?.hours(id)) ?? null;
  if (hours === null) return null;
  const nodes = Map.groupBy(hours, ({ node }) => node);
  return { whole: inHours(hours), nodes: new Map([...nodes].map(([node, own]) => [node, inHours(own)])) };
}

function inHours(hours: readonly HourAt[]): UsageView {
  const steps = [...Map.groupBy(hours, ({ startMs }) => startMs)].map(([startMs, parts]) => ({
    startSeconds: startMs / 1000,
    uploadBytes: parts.reduce((sum, one) => sum + one.uploadBytes, 0),
    downloadBytes: parts.reduce((sum, one) => sum + one.downloadBytes, 0),
  }));
  return { stepSeconds: HOUR_SECONDS, steps };
}

/** What all nodes that are not lost have moved and have open; null: there is no fleet. */
export function fleetTraffic(fleet: FleetAdmin | null, own: NodeTraffic): readonly NodePart[] | null {
  if (fleet === null) return null;
  const { nodes, self } = fleet.seen;
  const others = nodes.filter(({ isSelf }) => !isSelf).map(partOf);
  const state = nodes.find(({ isSelf }) => isSelf)?.state ?? "live";
  return [{ node: self, state, ...own }, ...others].sort((a, b) => (a.node < b.node ? -1 : 1));
}

export interface NodeTraffic {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly connections: number;
}

export interface NodePart extends NodeTraffic {
  readonly node: string;
  readonly state: FleetNodeView["state"];
}

/** A lost node has no connections that anybody could know of. */
function partOf({ name, state, connections, uploadTotalBytes, downloadTotalBytes }: FleetNodeView): NodePart {
  return {
    node: name,
    state,
    uploadBytes: uploadTotalBytes,
    downloadBytes: downloadTotalBytes,
    connections: state === "lost" ? 0 : connections,
  };
}
