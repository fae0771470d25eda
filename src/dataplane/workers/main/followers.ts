import type { Duplex } from "node:stream";

type Follower = (stream: Duplex) => void;

/** Calls both, in this order; of most connections there is one. */
export function both(before: Follower | null, next: Follower): Follower {
  if (before === null) return next;
  return (stream) => {
    before(stream);
    next(stream);
  };
}
