/** TAI64N (https://cr.yp.to/libtai/tai64.html): what tells an initiation from a repeated one, as each is later than the one before. */
import { TIMESTAMP_BYTES } from "./messages.ts";

const SECONDS_BASE = 2n ** 62n + 10n;
const NANOSECONDS = 1_000_000_000n;

export class Timestamps {
  readonly #nowMs: () => number;
  #last = 0n;

  /** `nowMs`: Unix time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Later than the one before, also where the clock was set back. */
  next(): Buffer {
    const now = BigInt(Math.floor(this.#nowMs())) * 1_000_000n;
    this.#last = now > this.#last ? now : this.#last + 1n;
    const bytes = Buffer.alloc(TIMESTAMP_BYTES);
    bytes.writeBigUInt64BE(SECONDS_BASE + this.#last / NANOSECONDS, 0);
    bytes.writeUInt32BE(Number(this.#last % NANOSECONDS), 8);
    return bytes;
  }
}
