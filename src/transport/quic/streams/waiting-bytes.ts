/** Received bytes that wait for their reader, copied together so that small pieces cost no more than their bytes. */

const SLAB_BYTES = 16 * 1024;

export class WaitingBytes {
  readonly #slabs: Buffer[] = [];
  /** Used of the last slab. */
  #used = 0;

  get isEmpty(): boolean {
    return this.#slabs.length === 0;
  }

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      let slab = this.#slabs.at(-1);
      if (slab === undefined || this.#used === slab.length) {
        slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
        this.#slabs.push(slab);
        this.#used = 0;
      }
      const size = Math.min(bytes.length - at, slab.length - this.#used);
      slab.set(bytes.subarray(at, at + size), this.#used);
      this.#used += size;
      at += size;
    }
  }

  /** The first piece, which is the caller's; null: there is none. */
  shift(): Buffer | null {
    const slab = this.#slabs[0];
    if (slab === undefined) return null;
    const isLast = this.#slabs.length === 1;
    const piece = slab.subarray(0, isLast ? this.#used : slab.length);
    this.#slabs.shift();
    return piece;
  }
}
