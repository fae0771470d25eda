/** The names of our objects in nftables. One table holds all of them, so that one deletion removes everything. */
export const TABLE = "inet svc";
/**
 * The same table of a process that takes another's place, while that one has the first: two processes cannot own one, and each
 * table goes with its owner. It takes the first name when that is free.
 */
export const NEXT_TABLE = "inet svc_next";
export type TableName = typeof TABLE | typeof NEXT_TABLE;
/** A second table without an owner: it decides what may leave while the first is missing. */
export const GUARD_TABLE = "inet svc_guard";

export interface SetNames {
  readonly local: string;
  readonly route: string;
  readonly routeExclude: string;
  /** Learned DIRECT addresses: a hash of single addresses, so that one comes and goes at little cost. */
  readonly direct: string;
}

export function setNames(family: 4 | 6): SetNames {
  return {
    local: `inet${family}_local_address_set`,
    route: `inet${family}_route_address_set`,
    routeExclude: `inet${family}_route_exclude_address_set`,
    direct: `inet${family}_kernel_direct_set`,
  };
}

/** Empty chains that a classifier fills with rules on the marks it sets; `accept` there means: not captured. */
export const DIRECT_MARK_CHAIN = "kernel_direct_mark";
/** The same for marks that mean captured. Directly before the redirect. */
export const PROXY_MARK_CHAIN = "kernel_direct_proxy";
/** Before connection tracking looks at a packet. */
export const UNTRACKED_CHAIN = "kernel_direct_untracked";
