import { float64At } from "#lib/at.ts";

/** The time that protocols compare with their peers: the system's, corrected by what a time server said. */
export class NetworkClock {
  /** For other threads: one double, the correction in ms. */
  readonly memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
  readonly #offset = new Float64Array(this.memory);
  /** Difference of the two clocks of the system when the offset was learnt. */
  #startedAtMs = 0;
  #correctedAtMs: number | null = null;

  readonly nowMs = (): number => Date.now() + float64At(this.#offset, 0);

  /** When it was corrected last, by the monotonic clock; null: it shows the system's time. */
  get correctedAtMs(): number | null {
    return this.#correctedAtMs;
  }

  correct(offsetMs: number): void {
    this.#offset[0] = offsetMs;
    this.#startedAtMs = startedAtMs();
    this.#correctedAtMs = performance.now();
  }

  /** The system's own time again. */
  reset(): void {
    this.#offset[0] = 0;
    this.#correctedAtMs = null;
  }

  /**
   * Returns to the system's time when its clock was set, or the machine has slept: a setter of the clock knew the time,
   * and a router without a battery would otherwise be wrong by years.
   */
  forgetIfJumped(): void {
    if (this.#correctedAtMs !== null && Math.abs(startedAtMs() - this.#startedAtMs) >= JUMP_MS) this.reset();
  }
}

/** Clocks that are steered by the system drift by less between two looks. */
const JUMP_MS = 1_000;

function startedAtMs(): number {
  return Date.now() - performance.now();
}
