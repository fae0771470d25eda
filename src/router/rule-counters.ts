import { float64At } from "#lib/at.ts";

/** How often, and when last, each rule of a list matched and was passed. */

export interface RuleCount {
  readonly hitCount: number;
  /** Milliseconds since the epoch; 0: never. */
  readonly hitAtMs: number;
  readonly missCount: number;
  readonly missAtMs: number;
}

/**
 * A match costs a few array writes, whatever the length of the list: only the begin and the end of each run through the
 * list are recorded, and the rules between are charged with their miss when the counters are read. A rule that a run
 * continues behind (PASS, no UDP) ends the run; the next run begins behind it, and its end may then show as the time of
 * the last miss of that one rule: the count is exact, the time is at most that of a hit.
 */
export class RuleCounters {
  readonly #size: number;
  /** Runs that began at a rule; and, since the last settling, that ended by its match. */
  readonly #startedRuns: Float64Array;
  readonly #ended: Float64Array;
  readonly #hits: Float64Array;
  readonly #misses: Float64Array;
  readonly #hitAtMs: Float64Array;
  /** Latest time at which a run came to an end at this rule, or (last element) at the end of the list. */
  readonly #endAtMs: Float64Array;
  readonly #missAtMs: Float64Array;

  constructor(size: number) {
    this.#size = size;
    this.#startedRuns = new Float64Array(size + 1);
    this.#ended = new Float64Array(size + 1);
    this.#endAtMs = new Float64Array(size + 1);
    this.#hits = new Float64Array(size);
    this.#misses = new Float64Array(size);
    this.#hitAtMs = new Float64Array(size);
    this.#missAtMs = new Float64Array(size);
  }

  /** The rules from `first` to the one before `end` were passed; `end` matched, or is the length of the list. */
  run(first: number, end: number, atMs: number): void {
    this.#startedRuns[first] = float64At(this.#startedRuns, first) + 1;
    this.#ended[end] = float64At(this.#ended, end) + 1;
    this.#endAtMs[end] = atMs;
    if (end < this.#size) this.#hitAtMs[end] = atMs;
  }

  /** Charges the recorded runs. `disabled` are the rules that were switched off all the while: they are not counted. */
  settle(disabled: Uint8Array | null): void {
    let passing = 0;
    for (let at = 0; at < this.#size; at++) {
      passing += float64At(this.#startedRuns, at);
      const hits = float64At(this.#ended, at);
      passing -= hits;
      this.#hits[at] = float64At(this.#hits, at) + hits;
      if (disabled?.[at] !== 1) this.#misses[at] = float64At(this.#misses, at) + passing;
    }
    let latest = float64At(this.#endAtMs, this.#size);
    for (let at = this.#size - 1; at >= 0; at--) {
      const missed = disabled?.[at] !== 1 && float64At(this.#misses, at) > 0;
      if (missed && latest > float64At(this.#missAtMs, at)) this.#missAtMs[at] = latest;
      latest = Math.max(latest, float64At(this.#endAtMs, at));
    }
    for (const array of [this.#startedRuns, this.#ended, this.#endAtMs]) array.fill(0);
  }

  /** As of the last settling. */
  read(at: number): RuleCount {
    return {
      hitCount: this.#hits[at] ?? 0,
      hitAtMs: this.#hitAtMs[at] ?? 0,
      missCount: this.#misses[at] ?? 0,
      missAtMs: this.#missAtMs[at] ?? 0,
    };
  }
}
