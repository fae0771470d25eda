/** `/api/svc/fleet`: the nodes that have the same users, seen and commanded from any of them. */
import * as z from "zod";
import { amount, unixMs } from "#api/answer-shapes.ts";
import { notFound } from "#api/errors.ts";
import { DONE, route, type Route } from "#api/route.ts";
import type { FleetAdmin, FleetNodeView, FleetView } from "#core/fleet.ts";
import type { Caller } from "#core/access.ts";
import type { UserAdmin } from "#core/users.ts";

/** The users that a caller manages. */
type AdminOf = (call: { readonly caller: Caller }) => UserAdmin;

const node = z
  .object({
    name: z.string().min(1),
    address: z.string(),
    labels: z.record(z.string(), z.string()),
    version: z.string(),
    epoch: z.int().positive(),
    seen_at: unixMs(),
    state: z.enum(["live", "late", "lost", "draining"]),
    self: z.literal(true).optional(),
    lag: z.object({ changes: amount(), milliseconds: amount() }),
    connections: amount(),
    last_minute: z.object({ upload_bytes: amount(), download_bytes: amount() }),
    unacknowledged: amount(),
    applied: z.record(z.string(), z.int().min(0)),
  })
  .meta({ id: "FleetNode" });

const fleet = z.object({
  self: z.string().min(1),
  /** Between the node that answers and the database. */
  database: z.object({ state: z.enum(["up", "away"]), since: unixMs(), reason: z.string().optional() }),
  nodes: z.array(node),
});

const faults = { 503: "The database is away; nothing was done" };

export function fleetRoutes(admin: AdminOf): readonly Route[] {
  const ofFleet = (call: Parameters<AdminOf>[0]): FleetAdmin => {
    const { fleet: found } = admin(call);
    if (found === null) throw notFound();
    return found;
  };
  const drains = (["drain", "resume"] as const).map((verb) =>
    route({
      method: "POST",
      scope: "admin",
      path: `/api/svc/fleet/nodes/:name/${verb}`,
      summary:
        verb === "drain"
          ? "Take a node out of service: no new sessions, no place in subscriptions; open sessions go on"
          : "Put a drained node into service again",
      answer: DONE,
      faults,
      handle: (call) => ofFleet(call).drain(call.params.name, verb === "drain"),
    }),
  );
  return [
    route({
      method: "GET",
      scope: "users",
      path: "/api/svc/fleet",
      summary: "The nodes of the fleet; without its database as they were last seen",
      answer: { status: 200, description: "The nodes", schema: fleet },
      handle: async (call) => fleetJson(await ofFleet(call).view()),
    }),
    ...drains,
    route({
      method: "DELETE",
      scope: "admin",
      path: "/api/svc/fleet/nodes/:name",
      summary: "Forget a lost node, and what it was lent",
      answer: DONE,
      faults,
      handle: (call) => ofFleet(call).forget(call.params.name),
    }),
  ];
}

function fleetJson({ self, database: { isUp, sinceMs, reason }, nodes }: FleetView) {
  return {
    self,
    database: { state: isUp ? "up" : "away", since: sinceMs, ...(isUp ? {} : { reason }) },
    nodes: nodes.map(nodeJson),
  };
}

function nodeJson(view: FleetNodeView) {
  const { name, address, labels, version, epoch, state, connections, unacknowledged, applied } = view;
  return {
    name,
    address,
    labels,
    version,
    epoch,
    seen_at: view.seenAtMs,
    state,
    ...(view.isSelf ? { self: true } : {}),
    lag: { changes: view.lagChanges, milliseconds: view.lagMs },
    connections,
    last_minute: { upload_bytes: view.uploadBytes, download_bytes: view.downloadBytes },
    unacknowledged,
    applied,
  };
}
