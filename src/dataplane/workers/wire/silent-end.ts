import { performance } from "node:perf_hooks";
import { END_AFTER_SILENCE_MS } from "#transport/websocket/frames.ts";
import type { WireIo } from "./wire.ts";

/** When an end may be said that the peer takes for the end of both directions: once nothing has come for so long. */
export class SilentEnd {
  /** Infinity: nothing is to be said yet. */
  #dueAtMs = Infinity;

  /** Something came. */
  onRead(): void {
    if (this.#dueAtMs !== Infinity) this.#dueAtMs = performance.now() + END_AFTER_SILENCE_MS;
  }

  /** `mayHaveMore`: the reader pauses, not the peer. Where it is not due, the wire is given a turn when it will be. */
  isDue(io: WireIo, mayHaveMore: boolean): boolean {
    const nowMs = performance.now();
    if (this.#dueAtMs === Infinity || mayHaveMore) this.#dueAtMs = nowMs + END_AFTER_SILENCE_MS;
    if (nowMs >= this.#dueAtMs) return true;
    io.wakeAtMs = Math.min(io.wakeAtMs, this.#dueAtMs);
    return false;
  }
}
