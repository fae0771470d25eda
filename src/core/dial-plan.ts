import type { Ip } from "./endpoint.ts";

/** How every address is dialled by an ordinary kernel socket, as long as no setting changes. */
export interface DialTemplate extends Omit<DialPlan, "ip" | "port" | "isFirstOfMany"> {
  /** Families that are dialled so. */
  readonly v4: boolean;
  readonly v6: boolean;
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
}
