import type { SteadyClocks } from "./steady-time.ts";

type Clocks = Pick<SteadyClocks, "monotonicMs" | "wallMs">;

/** So long a clock that was set ahead has to stand before anything is thrown away by it. */
const SETTLED_MS = 3_600_000;
/** Clocks that are steered drift by less between two looks. */
const DRIFT_MS = 1_000;

/** Unix time for what is dropped for its age: a date that was wrong for a moment costs no history. */
export class SettledClock {
  readonly #clock: Clocks;
  /** How far the system's clock is ahead of the monotonic one, as it is believed. */
  #aheadMs: number;
  /** When it was first seen further ahead than that, by the monotonic clock; null: it is not. */
  #sinceMs: number | null = null;

  constructor(clock: Clocks) {
    this.#clock = clock;
    this.#aheadMs = clock.wallMs() - clock.monotonicMs();
  }

  nowSeconds(): number {
    return Math.floor(this.nowMs() / 1000);
  }

  /** To be asked now and then: what happens between two calls is not seen. */
  nowMs(): number {
    const nowMs = this.#clock.monotonicMs();
    const aheadMs = this.#clock.wallMs() - nowMs;
    if (aheadMs <= this.#aheadMs + DRIFT_MS) this.#believe(aheadMs);
    else if (this.#sinceMs === null) this.#sinceMs = nowMs;
    else if (nowMs - this.#sinceMs >= SETTLED_MS) this.#believe(aheadMs);
    return nowMs + this.#aheadMs;
  }

  #believe(aheadMs: number): void {
    this.#aheadMs = aheadMs;
    this.#sinceMs = null;
  }
}
