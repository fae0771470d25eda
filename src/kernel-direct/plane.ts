/** A place in the kernel that acts on what was learnt: the sets of nftables, the maps of a classifier. */
import type { Ip } from "#core/session.ts";

/** One publication, applied whole. An address that changes sides is removed from one and added to the other. */
export interface Changes {
  readonly direct: Delta;
  readonly proxy: Delta;
}

export interface Delta {
  readonly add: readonly Ip[];
  readonly remove: readonly Ip[];
}

export interface Plane {
  /** Settles when the kernel has it. Rejects with what failed; the plane may hold anything then, until `replace`. */
  apply(changes: Changes): Promise<void>;
  /** Makes the kernel hold these and nothing else. */
  replace(direct: readonly Ip[], proxy: readonly Ip[]): Promise<void>;
}
