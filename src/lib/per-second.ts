/** Limits how often something happens: so many times a second, spread over it. Milliseconds that never go back. */
export class PerSecond {
  readonly #perMs: number;
  readonly #most: number;
  #left: number;
  #atMs = -Infinity;

  /** `atOnce`: how often it may happen behind a time in which it did not. */
  constructor(most: number, atOnce: number) {
    this.#perMs = most / 1000;
    this.#most = this.#left = atOnce;
  }

  /** Has it happened as often as it may? */
  isFull(nowMs: number): boolean {
    this.#left = Math.min(this.#most, this.#left + (nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
    return this.#left < 1;
  }

  add(): void {
    this.#left--;
  }
}
