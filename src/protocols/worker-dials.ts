/** How a worker dials through a node in place of the node itself, by the main thread's plan or by itself. */
import type { DialPlan, DialTemplate } from "#core/dial-plan.ts";
import type { Dialer, Outbound, OutboundEnv } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import type { TlsClient } from "#core/tls.ts";
import type {
  MuxRecipe,
  SessionRecipe,
  UnderlayRecipe,
  UpgradeRecipe,
  WireRecipe,
} from "#core/wire-recipe.ts";
import { canKeepAeads } from "#platform/aead.ts";
import { beginWire, recipe as namedRecipe } from "./begin-wire.ts";

/** No form of a name that goes to a server is longer. */
const MOST_NAME_BYTES = 255;

/** It can be said to a server. */
export function fitsServers({ host }: Destination): boolean {
  return host === null || Buffer.byteLength(host) <= MOST_NAME_BYTES;
}

/** What its server is reached by, where no more lies between the socket and its wire than workers can open. */
export interface NodeServer {
  readonly dialer: Dialer;
  readonly address: Destination;
  /** Null: there is no TLS. */
  readonly tls: Pick<TlsClient, "recipe"> | null;
  /** Null: there is none. */
  readonly upgrade: UpgradeRecipe | null;
  /** Absent: each connection serves one stream. */
  readonly session?: SessionRecipe;
  /** Streams share connections to it. Absent or null: each has one. */
  readonly shared?: Omit<MuxRecipe, "base"> | null;
}

/** A stream of a connection over that. */
function streamOf(shared: Omit<MuxRecipe, "base">, under: UnderlayRecipe): UnderlayRecipe {
  return { tls: null, upgrade: null, mux: { ...shared, base: { ...namedRecipe("none", {}), under } } };
}

/** Nothing where workers cannot: `server` or `recipe` is null. */
export function workerDials(
  server: NodeServer | null,
  recipe: WireRecipe | null,
  { nowMs }: Pick<OutboundEnv, "nowMs">,
): Pick<Outbound, "plain" | "template"> {
  if (server === null || recipe === null) return {};
  const { dialer, address, tls: client, upgrade, session, shared = null } = server;
  const recipeNow = (): WireRecipe | null => {
    if (!canKeepAeads()) return null;
    const tls = client?.recipe?.() ?? null;
    if (client !== null && tls === null) return null;
    if (shared !== null) return { ...recipe, under: streamOf(shared, { tls, upgrade }) };
    if (tls === null && upgrade === null) return recipe;
    return { ...recipe, under: { tls, upgrade, ...(session && { session }) } };
  };
  return {
    plain(destination, _reach, signal) {
      if (!fitsServers(destination)) return null; // `connect` says it
      const by = recipeNow();
      if (by === null) return null;
      // Asked anew: so the plan keeps the client of TLS until it is carried out.
      const wire = () => beginWire(recipeNow() ?? by, destination, nowMs);
      const over = (plan: DialPlan | null): DialPlan | null =>
        plan === null || plan.wire !== undefined ? null : { ...plan, wire };
      const plan = dialer.plain?.(address, null, signal) ?? null;
      return plan instanceof Promise ? plan.then(over) : over(plan);
    },
    template(): DialTemplate | null {
      const by = recipeNow();
      const template = by === null ? null : (dialer.template?.() ?? null);
      return by === null || template === null || template.node !== undefined
        ? null
        : { ...template, node: { server: address, recipe: by } };
    },
  };
}
