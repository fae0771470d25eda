import { shake128 } from "@noble/hashes/sha3.js";
import { byteAt } from "#lib/at.ts";

/** The rate of SHAKE128. */
const BLOCK_BYTES = 168;

/** Numbers that mask sizes and choose paddings: one stream for both, from the IV. */
export class SizeMask {
  readonly #xof: ReturnType<typeof shake128.create>;
  readonly #block = new Uint8Array(BLOCK_BYTES);
  #at = BLOCK_BYTES;
  /** Numbers so far. */
  drawn = 0;

  /** Behind the first `drawn` numbers. */
  constructor(iv: Uint8Array, drawn = 0) {
    this.#xof = shake128.create().update(iv);
    while (this.drawn < drawn) this.next();
  }

  next(): number {
    if (this.#at === BLOCK_BYTES) {
      this.#xof.xofInto(this.#block);
      this.#at = 0;
    }
    const value = (byteAt(this.#block, this.#at) << 8) | byteAt(this.#block, this.#at + 1);
    this.#at += 2;
    this.drawn++;
    return value;
  }
}
