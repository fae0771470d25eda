import { uint32At } from "#lib/at.ts";

const BLOCK_BITS = 32;
const BLOCKS = 256;
/** How far behind the newest a packet id may be. The block that is being filled cannot be used whole. */
export const WINDOW_PACKETS = (BLOCKS - 1) * BLOCK_BITS;

/** Which packet ids of a session have been seen: a ring of bits behind the newest id, after RFC 6479. */
export class PacketWindow {
  readonly #blocks = new Uint32Array(BLOCKS);
  #newest = 0n;
  #started = false;

  /** Marks `id`; false where it was seen before or is too old to know. Call it for authenticated packets only. */
  accept(id: bigint): boolean {
    const block = id / BigInt(BLOCK_BITS);
    if (!this.#started || id > this.#newest) this.#advance(block, id);
    else if (this.#newest - id >= BigInt(WINDOW_PACKETS)) return false;
    const index = Number(block % BigInt(BLOCKS));
    const bit = 1 << Number(id % BigInt(BLOCK_BITS));
    const seen = uint32At(this.#blocks, index);
    if ((seen & bit) !== 0) return false;
    this.#blocks[index] = seen | bit;
    return true;
  }

  #advance(block: bigint, id: bigint): void {
    const from = this.#started ? this.#newest / BigInt(BLOCK_BITS) : block - 1n;
    const cleared = block - from > BigInt(BLOCKS) ? BLOCKS : Number(block - from);
    for (let step = 0; step < cleared; step++)
      this.#blocks[Number(((block - BigInt(step)) % BigInt(BLOCKS)) + BigInt(BLOCKS)) % BLOCKS] = 0;
    this.#newest = id;
    this.#started = true;
  }
}
