import type { LeaseNames, Neighbours } from "#core/neighbours.ts";

/** A machine that tells no hardware addresses. */
export const NO_NEIGHBOURS: Neighbours = {
  macOf: () => null,
  addressesOf: () => [],
  watch: () => ({ [Symbol.dispose]() {} }),
};

export const NO_LEASES: LeaseNames = { nameOf: () => null };
