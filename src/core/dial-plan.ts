import type { Destination, Ip } from "./endpoint.ts";
import type { WireStart } from "./wire-state.ts";
import type { SharedResolver } from "./resolver.ts";
import type { WireRecipe } from "./wire-recipe.ts";

/** How the address of a name is chosen among those that a resolver has answered with. */
export interface NameChoice extends SharedResolver {
  /** The family that is asked for; null: both. */
  readonly family: 4 | 6 | null;
  /** Of both: an IPv6 address where there is one; else an IPv4 address. */
  readonly prefersV6: boolean;
}

/** A node whose server is dialled in place of the destination. */
export interface NodeTemplate {
  readonly server: Destination;
  readonly recipe: WireRecipe;
}

/** How every address is dialled by an ordinary kernel socket, as long as no setting changes. */
export interface DialTemplate extends Omit<DialPlan, "ip" | "port" | "isFirstOfMany" | "isOfNode" | "wire"> {
  /** Families that are dialled so. */
  readonly v4: boolean;
  readonly v6: boolean;
  /** Are addresses of the loopback dialled so, too? */
  readonly loopback: boolean;
  /** Null: what names lead to is for the main thread to find. */
  readonly names:
    | (NameChoice & { /** Of the first of several addresses. */ readonly timeoutMs: number })
    | null;
  /** Absent: the destination itself is dialled. */
  readonly node?: NodeTemplate;
}

/** A connection by an ordinary kernel socket, described so that a worker can make it. */
export interface DialPlan {
  readonly ip: Ip;
  readonly port: number;
  /** SO_MARK; 0: none. */
  readonly routingMark: number;
  /** SO_BINDTODEVICE; empty: none. */
  readonly interfaceName: string;
  /** Null: the peer is not probed. */
  readonly probes: { readonly idleMs: number; readonly intervalMs: number } | null;
  readonly timeoutMs: number;
  /** There are more addresses to try where this one does not answer in time. */
  readonly isFirstOfMany: boolean;
  /** It leads to the server of a node, and its failure is that node's; absent: to the destination. */
  readonly isOfNode?: true;
  /** What lies over the socket, once it is connected: to be called when it is dialled for certain. Absent: nothing does. */
  readonly wire?: () => WireStart;
}

/**
 * Where the address of a session is from: the client's own words; a resolver, at the dial or already for the rules; the hosts
 * table.
 */
export const ADDRESS_ORIGINS = ["client", "dial", "rules", "hosts"] as const;

export type AddressOrigin = (typeof ADDRESS_ORIGINS)[number];
