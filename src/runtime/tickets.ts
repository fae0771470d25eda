/** Counts what still uses a thing, so that an old generation can finish. */
export class InFlight {
  #out = 0;
  #closing: (() => void) | null = null;

  get out(): number {
    return this.#out;
  }

  enter(): void {
    this.#out++;
  }

  leave(): void {
    this.#out--;
    if (this.#out === 0) this.#closing?.();
  }

  /** Settles when all have left. Nothing may enter any more from here on. */
  drained(): Promise<void> {
    if (this.#out === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closing = resolve;
    return promise;
  }
}
