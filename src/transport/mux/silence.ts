/** Whether the peer of a connection that many streams share still says anything. */
import { performance } from "node:perf_hooks";

/** A stream may wait long for what lies behind its server; that a connection says nothing for so long is rare. */
const MOST_SILENT_MS = 5_000;

/**
 * The path of a connection may be gone and the kernel find out after a quarter of an hour: what is new had better go by another
 * one. Where the peer says something after all, it is used again.
 */
export class Silence {
  /** When a stream was opened behind all that was heard; Infinity: none was. */
  #sinceMs = Infinity;

  /** A stream is opened. */
  asked(): void {
    if (this.#sinceMs === Infinity) this.#sinceMs = performance.now();
  }

  heard(): void {
    this.#sinceMs = Infinity;
  }

  /** No stream is open any more. One that was given up soon says nothing about the peer. */
  unused(): void {
    if (!this.isLong) this.#sinceMs = Infinity;
  }

  get isLong(): boolean {
    return performance.now() - this.#sinceMs >= MOST_SILENT_MS;
  }
}
