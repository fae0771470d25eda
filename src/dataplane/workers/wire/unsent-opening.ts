import { performance } from "node:perf_hooks";
import type { WireIo } from "./wire.ts";

/** What goes out in front of a peer's first bytes, and alone where there were none for a while. */
export class UnsentOpening {
  #bytes: Uint8Array;
  /** Infinity: it never goes alone. */
  readonly #dueAtMs: number;

  constructor(bytes: Uint8Array, afterMs: number = Infinity) {
    this.#bytes = bytes;
    this.#dueAtMs = performance.now() + afterMs;
  }

  /** Never empty, unless all is out. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  get isDue(): boolean {
    return this.#dueAtMs !== Infinity && performance.now() >= this.#dueAtMs;
  }

  /** The wire is given a turn then. */
  await(io: WireIo): void {
    io.wakeAtMs = Math.min(io.wakeAtMs, this.#dueAtMs);
  }

  /** So many bytes were taken, of these and of what followed them: how many of the latter. Less than 0: some of these are left. */
  taken(bytes: number): number {
    const behind = bytes - this.#bytes.length;
    this.#bytes = this.#bytes.subarray(bytes);
    return behind;
  }
}
