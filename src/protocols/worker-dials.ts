/** How a worker dials through a node in place of the node itself, by the main thread's plan or by itself. */
import type { DialPlan, DialTemplate } from "#core/dial-plan.ts";
import type { Dialer, Outbound, OutboundEnv } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import type { WireRecipe } from "#core/wire-recipe.ts";
import { canKeepAeads } from "#platform/aead.ts";
import { beginWire } from "./begin-wire.ts";

/** No form of a name that goes to a server is longer. */
const MOST_NAME_BYTES = 255;

/** What its server is reached by, where nothing but its own wire lies over the socket. */
export interface NodeServer {
  readonly dialer: Dialer;
  readonly address: Destination;
}

/** Nothing where workers cannot: `server` or `recipe` is null. */
export function workerDials(
  server: NodeServer | null,
  recipe: WireRecipe | null,
  { nowMs }: Pick<OutboundEnv, "nowMs">,
): Pick<Outbound, "plain" | "template"> {
  if (server === null || recipe === null) return {};
  const { dialer, address } = server;
  return {
    plain(destination, _reach, signal) {
      const { host } = destination;
      if (host !== null && Buffer.byteLength(host) > MOST_NAME_BYTES) return null; // `connect` says it
      if (!canKeepAeads()) return null;
      const wire = () => beginWire(recipe, destination, nowMs);
      const over = (plan: DialPlan | null): DialPlan | null =>
        plan === null || plan.wire !== undefined ? null : { ...plan, wire };
      const plan = dialer.plain?.(address, null, signal) ?? null;
      return plan instanceof Promise ? plan.then(over) : over(plan);
    },
    template(): DialTemplate | null {
      const template = canKeepAeads() ? (dialer.template?.() ?? null) : null;
      return template === null || template.node !== undefined
        ? null
        : { ...template, node: { server: address, recipe } };
    },
  };
}
