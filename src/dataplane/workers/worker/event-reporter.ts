import { performance } from "node:perf_hooks";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";

/** Lazy events wait so long, and then for a moment in which nothing happens: the main thread would take a core from clients. */
const LAZY_MS = 20;
const MOST_LAZY_MS = 40;
const MOMENT_MS = 1;

/** The events of one worker to the main thread, which is woken for them once a turn. */
export class EventReporter {
  readonly #table: RelayMemory;
  readonly #post: () => void;
  readonly #atSeam: AtSeam | undefined;
  #hasEvents = false;
  /** Since when a lazy event waits; 0: there is none. */
  #waitsSinceMs = 0;

  /** `post` wakes the main thread. */
  constructor(table: RelayMemory, post: () => void, atSeam: AtSeam | undefined) {
    this.#table = table;
    this.#post = post;
    this.#atSeam = atSeam;
  }

  report(slot: number, kind: number): void {
    this.#table.report(slot, kind);
    this.#hasEvents = true;
    this.#atSeam?.("reported");
  }

  /** For an event that can wait until there is another one, or for a moment. */
  reportLazily(slot: number, kind: number): void {
    this.#table.report(slot, kind);
    if (this.#waitsSinceMs === 0) this.#waitsSinceMs = performance.now();
    this.#atSeam?.("reported");
  }

  /** Once a turn, behind all events; `isBusy`: it had some. How long the worker may sleep, in ms: at most `sleepMs`. */
  signal(sleepMs: number, isBusy: boolean): number {
    if (!this.#hasEvents && this.#waitsSinceMs > 0) {
      const waitedMs = performance.now() - this.#waitsSinceMs;
      const leftMs = Math.max(LAZY_MS - waitedMs, isBusy && waitedMs < MOST_LAZY_MS ? MOMENT_MS : 0);
      if (leftMs > 0) return Math.min(sleepMs, Math.ceil(leftMs));
      this.#hasEvents = true;
    }
    if (!this.#hasEvents) return sleepMs;
    this.#hasEvents = false;
    this.#waitsSinceMs = 0;
    if (this.#table.mustSignal()) this.#post();
    return sleepMs;
  }
}
