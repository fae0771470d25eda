/** How a worker opens streams of the connections that a node with `smux` shares, in connections of its own. */
import { randomUUID } from "node:crypto";
import type { DialPlan, DialTemplate } from "#core/dial-plan.ts";
import type { Outbound, OutboundEnv } from "#core/outbound.ts";
import type { MuxRecipe, WireRecipe } from "#core/wire-recipe.ts";
import { beginWire, recipe } from "#protocols/begin-wire.ts";
import { fitsServers } from "#protocols/worker-dials.ts";
import type { MuxClientOptions } from "#transport/mux/fields.ts";
import { MUX_DESTINATION } from "#transport/mux/preface.ts";

export interface SharedByWorkers extends Required<Pick<Outbound, "plain" | "template">> {
  /** The node has gone. */
  leave(): void;
}

/** Those of nodes that workers cannot dial, and whose streams they cannot open, are the event loop's. */
export function sharedByWorkers(
  node: Outbound,
  options: MuxClientOptions,
  { nowMs }: Pick<OutboundEnv, "nowMs">,
): SharedByWorkers {
  const { protocol, padding } = options;
  if ((protocol !== "smux" && protocol !== "yamux") || padding)
    return { plain: () => null, template: () => null, leave() {} };
  const gone = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const shared: Omit<MuxRecipe, "base"> = {
    id: randomUUID(),
    protocol,
    maxConnections: options["max-connections"],
    minStreams: options["min-streams"],
    maxStreams: options["max-streams"],
    gone,
  };
  const over = (base: WireRecipe): WireRecipe => {
    const under = { tls: null, upgrade: null, mux: { ...shared, base } };
    return { ...recipe("mux", {}), under };
  };
  const baseNow = (): WireRecipe | null => baseOf(node.template?.() ?? null);
  return {
    leave: () => void Atomics.store(new Int32Array(gone), 0, 1),
    plain(destination, reach, signal) {
      const by = fitsServers(destination) ? baseNow() : null;
      if (by === null) return null;
      // Asked anew: so the plan keeps what opens a connection until it is carried out.
      const wire = () => beginWire(over(baseNow() ?? by), destination, nowMs);
      const opened = (plan: DialPlan | null): DialPlan | null => plan && { ...plan, wire };
      const plan = node.plain?.(MUX_DESTINATION, reach, signal) ?? null;
      return plan instanceof Promise ? plan.then(opened) : opened(plan);
    },
    template(): DialTemplate | null {
      const template = node.template?.() ?? null;
      const base = baseOf(template);
      if (template?.node === undefined || base === null) return null;
      return { ...template, node: { server: template.node.server, recipe: over(base) } };
    },
  };
}

/** Null: workers do not begin it, or it is itself a stream of a connection that is shared. */
function baseOf(template: DialTemplate | null): WireRecipe | null {
  const base = template?.node?.recipe;
  return base === undefined || base.under?.mux !== undefined ? null : base;
}
