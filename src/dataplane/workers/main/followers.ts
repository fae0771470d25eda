import type { Followed } from "#core/accepted.ts";

type Follower = (one: Followed) => void;

/** Calls both, in this order; of most connections there is one. */
export function both(before: Follower | null, next: Follower): Follower {
  if (before === null) return next;
  return (one) => {
    before(one);
    next(one);
  };
}
