import type { Direction } from "#core/meter.ts";

/** The main thread's observer of a task in a worker. */
export interface WorkerTaskOwner {
  /** A direction has bytes that may not move without leave. */
  onGrantRequest(direction: Direction): void;
  /** Says what has moved up to now. */
  look?(): void;
  /** Of a client that the thread has accepted: connected (null), or why not. */
  onDialled?(errno: number | null): void;
  /** Nothing is read or written any more, and the counts are final. */
  onEnded(): void;
}
