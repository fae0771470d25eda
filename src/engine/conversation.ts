import type { Io, Outcome } from "./plain-half.ts";

export type Side = 0 | 1;
export const CLIENT = 0;

export type Way = 0 | 1;
export const UPLOAD = 0;

/**
 * What a relay thread moves. It does not own the two descriptors: the loop watches them, closes them when `run` answers
 * `OVER`, and resets them when it answers `FAILED`. A kind whose one side is encrypted is one more implementation.
 */
export interface Conversation {
  /** In the loop's queue of those that have more to do. */
  queued: boolean;
  /** At least one direction has ended. */
  readonly halfClosed: boolean;
  /** The kernel's news of a socket, epoll(7) bits. */
  notice(side: Side, events: number): void;
  /** Every piece is asked for, or none. */
  limit(limited: boolean): void;
  /** What a direction asked for may move. */
  grant(way: Way, bytes: number): void;
  /** One turn; never blocks. */
  run(io: Io): Outcome;
  /** Gives back what it holds of the thread's. */
  drop(io: Io): void;
}
