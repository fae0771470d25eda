import { performance } from "node:perf_hooks";
import { openTrim } from "#platform/linux/heap.ts";

/** Memory is returned to the system no more often: the worker stands still meanwhile. */
const TRIM_MS = 10_000;

/** Returns to the system what a storm of clients took of the allocator. */
export class HeapTrimmer {
  readonly #trim = openTrim();
  #trimmedAtMs = -Infinity;
  #isSwollen = false;

  /** Once a turn. `isSettled`: a storm has just ended. */
  tick(isSettled: boolean): void {
    if (isSettled) this.#isSwollen = true;
    if (!this.#isSwollen) return;
    const nowMs = performance.now();
    if (nowMs - this.#trimmedAtMs < TRIM_MS) return;
    this.#isSwollen = false;
    this.#trimmedAtMs = nowMs;
    this.#trim?.();
  }
}
