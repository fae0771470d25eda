import { performance } from "node:perf_hooks";
import type { WireIo } from "./wire.ts";

/**
 * When a wire wants its turn. The loop keeps the earliest time of a slot alone, and forgets it with the turn, which may have
 * been for something else, or for what has happened before: so the wire asks again in each of its turns.
 */
export class WantedTurn {
  /** Infinity: none was asked for. */
  #atMs = Infinity;

  get isDue(): boolean {
    return this.#atMs !== Infinity && performance.now() >= this.#atMs;
  }

  /** By `performance.now()`; Infinity: no further one. */
  ask(io: WireIo, atMs: number): void {
    this.#atMs = Math.min(this.#atMs, atMs);
    io.wakeAtMs = Math.min(io.wakeAtMs, this.#atMs);
  }

  /** For `Wire.remind`. One that is due is the reader's: it makes the wire readable. */
  remind(io: WireIo): void {
    if (this.#atMs !== Infinity && !this.isDue) io.wakeAtMs = Math.min(io.wakeAtMs, this.#atMs);
  }

  /** Without the loop: the wire has a turn already, or asks for it in another way. */
  askNow(): void {
    this.#atMs = 0;
  }

  /** It has come. */
  take(): void {
    this.#atMs = Infinity;
  }
}
