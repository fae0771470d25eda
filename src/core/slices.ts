import { setImmediate as nextTurn } from "node:timers/promises";
import type { Steps } from "#lib/steps.ts";

/** The longest that a relayed session waits for one slice; an answer of a peer waits for two or three. */
const SLICE_MS = 4;

/**
 * Long work on the main thread in slices, between which the event loop serves everything else. Works that share one object
 * share its slices: each turn of the loop has one of them.
 */
export class Slices {
  #endsAt = performance.now() + SLICE_MS;
  #last: Promise<void> = Promise.resolve();

  /** Is it time to pause? For works whose steps are too short for a promise each. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** To be awaited between the steps of a work; at once while the slice lasts. */
  async pause(): Promise<void> {
    if (!this.isOver) return;
    this.#last = this.#last.then(() => this.#begin());
    await this.#last;
  }

  /** The whole work, with a pause behind a step where the slice is over. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.isOver) await this.pause();
    }
  }

  async #begin(): Promise<void> {
    await nextTurn();
    this.#endsAt = performance.now() + SLICE_MS;
  }
}
