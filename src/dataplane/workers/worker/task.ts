import type { FlowDirection, Side } from "#dataplane/workers/shared/sides.ts";
import type { WireIo } from "#dataplane/workers/wire/wire.ts";
import type { Pipes } from "./pipes.ts";

/** What the tasks of one worker share. */
export interface TaskIo extends WireIo {
  readonly pipes: Pipes;
  readonly counts: Float64Array;
  /** A direction wants to move so much; `index` is that of its count. */
  readonly ask: (index: number, bytes: number) => void;
}

/** Nothing can be done until the kernel says so. */
export const WAITS = 0;
/** Its share of this turn is used up. */
export const MORE = 1;
/** The end was passed on. */
export const OVER = 2;
export const FAILED = 3;
/** The main thread has to continue with it. */
export const BACK = 4;
export type Outcome = typeof WAITS | typeof MORE | typeof OVER | typeof FAILED | typeof BACK;

/**
 * What a worker moves. It does not own the two descriptors: the loop watches them, closes them when `run` answers
 * `OVER`, resets them when it answers `FAILED`, and leaves them open when it answers `BACK`.
 */
export interface Task {
  /** In the loop's queue of those that have more to do. */
  queued: boolean;
  /** At least one direction has ended. */
  readonly halfClosed: boolean;
  /** The kernel's events of a socket, epoll(7) bits. False: it knew them. */
  onEvents(side: Side, events: number): boolean;
  /** Every piece is asked for, or none. */
  limit(limited: boolean): void;
  /** What a direction asked for may move. */
  grant(way: FlowDirection, bytes: number): void;
  /** One turn; never blocks. */
  run(io: TaskIo): Outcome;
  /** Gives back what it holds of the thread's. */
  drop(io: TaskIo): void;
}
