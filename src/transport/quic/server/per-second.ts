/** Counts what happens within a second. Milliseconds that never go back. */
export class PerSecond {
  readonly #most: number;
  #sinceMs = -Infinity;
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Has it happened as often as it may? */
  isFull(nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= 1000) {
      this.#sinceMs = nowMs;
      this.#count = 0;
    }
    return this.#count >= this.#most;
  }

  add(): void {
    this.#count++;
  }
}
