/** What a store is opened with. */
import type { StoreEvents } from "#core/events.ts";
import type { Log } from "#core/log.ts";

export interface StoreOptions {
  /** Absolute. The backup is `<path>.bak`, the lock `<path>.lock`, damaged files are kept as `<path>.corrupt-<unix>`. */
  readonly path: string;
  /** Names of the tables; A-Z, a-z and digits. */
  readonly parts: readonly string[];
  readonly nowMs: () => number;
  readonly log: Log;
  /** A third file, `<path>.seen`, tells where both files are older together. Absent: none is kept. */
  readonly isMarked?: boolean;
  /** Is told of each file that was made anew from the other one. */
  readonly events?: StoreEvents;
}
