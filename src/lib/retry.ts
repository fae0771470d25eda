/** Tries again what could not be done yet, less and less often, until it is done or given up. */

const FIRST_MS = 1_000;
/** Each time it waits twice as long as the time before, up to this. */
const MOST_MS = 60_000;

export class Retry {
  readonly #work: () => Promise<void>;
  #timer: NodeJS.Timeout | null = null;
  /** Another one with each start and stop, so that what is under way does not go on behind them. */
  #round = {};

  /** `work` resolves when it is done; where it rejects it is tried again, and it has reported the failure itself. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** From the beginning, where it is running. Keeps no process alive. */
  start(): void {
    this.stop();
    this.#after(FIRST_MS, this.#round);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#round = {};
  }

  #after(delayMs: number, round: object): void {
    this.#timer = setTimeout(() => void this.#try(delayMs, round), delayMs).unref();
  }

  async #try(delayMs: number, round: object): Promise<void> {
    try {
      await this.#work();
    } catch {
      if (this.#round === round) this.#after(Math.min(MOST_MS, delayMs * 2), round);
    }
  }
}
