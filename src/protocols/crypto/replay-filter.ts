import { Fingerprints } from "#lib/fingerprints.ts";

/** How many values one generation holds, and for how long it takes new ones. */
export interface ReplayFilterOptions {
  readonly capacity: number;
  /** A value is remembered at least this long, unless more than `capacity` others arrive; Infinity: only those count. */
  readonly windowMs: number;
  readonly now: () => number;
}

/**
 * Remembers values that must not come twice (salts, AuthIDs), in two generations. The bound: `capacity` a generation;
 * a full one becomes the old one and the values of the old one before it are forgotten.
 */
export class ReplayFilter {
  readonly #options: ReplayFilterOptions;
  #current = new Fingerprints();
  #previous = new Fingerprints();
  readonly #startedAtMs: number;
  #rotatedAtMs: number;

  constructor(options: ReplayFilterOptions) {
    this.#options = options;
    this.#startedAtMs = this.#rotatedAtMs = options.now();
  }

  /**
   * Was this memory there in the second in which a request says that it was made? What is older may have been answered
   * before a restart. `nowMs`: Unix time by the clock that requests are compared with. The start is reckoned by the age of
   * the memory, so a clock that is corrected later refuses no client.
   */
  covers(unixSeconds: number, nowMs: number): boolean {
    const startedMs = nowMs - (this.#options.now() - this.#startedAtMs);
    return unixSeconds >= Math.floor(startedMs / 1000);
  }

  has(value: Uint8Array): boolean {
    this.#expire();
    return this.#current.has(value) || this.#previous.has(value);
  }

  /** Remembers `value`; false where it was known already. */
  add(value: Uint8Array): boolean {
    this.#expire();
    if (this.#previous.has(value)) return false;
    if (this.#current.size < this.#options.capacity) return this.#current.add(value);
    if (this.#current.has(value)) return false;
    this.#rotate();
    return this.#current.add(value);
  }

  #expire(): void {
    const ageMs = this.#options.now() - this.#rotatedAtMs;
    if (ageMs < this.#options.windowMs) return;
    if (ageMs >= 2 * this.#options.windowMs) this.#current.clear();
    this.#rotate();
  }

  #rotate(): void {
    this.#previous = this.#current;
    this.#current = new Fingerprints();
    this.#rotatedAtMs = this.#options.now();
  }
}
