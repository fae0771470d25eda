import { shake128 } from "@noble/hashes/sha3.js";
import { byteAt } from "#lib/at.ts";
import { shake128Block } from "#platform/single-blocks.ts";

/** The rate of SHAKE128. */
const BLOCK_BYTES = 168;
const NOTHING = new Uint8Array(0);

type Stream = ReturnType<typeof shake128.create>;

/** Numbers that mask sizes and choose paddings: one stream for both, from the IV. */
export class SizeMask {
  readonly #iv: Uint8Array;
  /** Null before the second block: many connections end within the first, which the library makes in a tenth of the time. */
  #stream: Stream | null = null;
  #block: Uint8Array;
  #at = 0;
  /** Numbers so far. */
  drawn = 0;

  /** Behind the first `drawn` numbers. */
  constructor(iv: Uint8Array, drawn = 0) {
    this.#iv = iv;
    this.#block = NOTHING;
    while (this.drawn < drawn) this.next();
  }

  next(): number {
    if (this.#at === this.#block.length) this.#nextBlock();
    const value = (byteAt(this.#block, this.#at) << 8) | byteAt(this.#block, this.#at + 1);
    this.#at += 2;
    this.drawn++;
    return value;
  }

  #nextBlock(): void {
    const isFirst = this.#block.length === 0;
    const first = isFirst ? shake128Block(this.#iv) : null;
    this.#at = 0;
    if (first !== null) this.#block = first;
    else {
      if (isFirst) this.#block = new Uint8Array(BLOCK_BYTES);
      this.#stream ??= streamOf(this.#iv, isFirst ? 0 : BLOCK_BYTES);
      this.#stream.xofInto(this.#block);
    }
  }
}

function streamOf(iv: Uint8Array, behind: number): Stream {
  const stream = shake128.create().update(iv);
  if (behind > 0) stream.xof(behind);
  return stream;
}
