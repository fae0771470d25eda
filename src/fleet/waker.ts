/** Waits for a while, or until there is something to do. */
export class Waker {
  #isAwake = false;
  #resolve: (() => void) | null = null;

  /** Ends the wait under way, or the next one at once. */
  wake(): void {
    this.#isAwake = true;
    this.#resolve?.();
  }

  /** One waiter at a time. Keeps no process alive. */
  async wait(milliseconds: number): Promise<void> {
    if (!this.#isAwake) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, milliseconds).unref();
      this.#resolve = resolve;
      await promise;
      clearTimeout(timer);
      this.#resolve = null;
    }
    this.#isAwake = false;
  }
}
