/** Received bytes that wait for their reader, copied together: it gets many packets as one piece. */

/** A stream that brings little takes little; one that brings much gets pieces that cost less a byte. */
const LEAST_SLAB_BYTES = 2048;
const MOST_SLAB_BYTES = 64 * 1024;

export class WaitingBytes {
  readonly #slabs: Buffer[] = [];
  /** Used of the last slab. */
  #used = 0;
  /** Of the next slab. */
  #slabBytes = LEAST_SLAB_BYTES;

  get isEmpty(): boolean {
    return this.#slabs.length === 0;
  }

  /** Copies them. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const slab = this.#slabWithRoom();
      const size = Math.min(bytes.length - at, slab.length - this.#used);
      slab.set(size === bytes.length ? bytes : bytes.subarray(at, at + size), this.#used);
      this.#used += size;
      at += size;
    }
  }

  #slabWithRoom(): Buffer {
    const last = this.#slabs.at(-1);
    if (last !== undefined && this.#used < last.length) return last;
    if (last !== undefined) this.#slabBytes = Math.min(MOST_SLAB_BYTES, 2 * this.#slabBytes);
    const slab = Buffer.allocUnsafeSlow(this.#slabBytes);
    this.#slabs.push(slab);
    this.#used = 0;
    return slab;
  }

  /** The first piece, which is the caller's; null: there is none. */
  shift(): Buffer | null {
    const slab = this.#slabs.shift();
    if (slab === undefined) return null;
    if (this.#slabs.length > 0) return slab;
    const isNearlyEmpty = this.#used < slab.length / 4;
    if (isNearlyEmpty) this.#slabBytes = Math.max(LEAST_SLAB_BYTES, this.#slabBytes / 2);
    const piece = slab.subarray(0, this.#used);
    if (!isNearlyEmpty) return piece;
    // Its reader may keep it, and a peer may send single bytes. The memory is its own: it is given away with the piece.
    const own = Buffer.allocUnsafeSlow(piece.length);
    own.set(piece);
    return own;
  }

  clear(): void {
    this.#slabs.length = 0;
  }
}
