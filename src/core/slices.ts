import { setImmediate as nextTurn } from "node:timers/promises";

/** The longest that a relayed session waits for one slice. */
const SLICE_MS = 8;

/**
 * Long work on the main thread in slices, between which the event loop serves everything else. Works that share one object
 * share its slices: each turn of the loop has one of them.
 */
export class Slices {
  #endsAt = performance.now() + SLICE_MS;
  #last: Promise<void> = Promise.resolve();

  /** To be awaited between the steps of a work; at once while the slice lasts. */
  async pause(): Promise<void> {
    if (performance.now() < this.#endsAt) return;
    this.#last = this.#last.then(() => this.#begin());
    await this.#last;
  }

  async #begin(): Promise<void> {
    await nextTurn();
    this.#endsAt = performance.now() + SLICE_MS;
  }
}
