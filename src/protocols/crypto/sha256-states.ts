import type { Sha256Compression } from "#platform/single-blocks.ts";
import { uint32At } from "#lib/at.ts";

/** SHA-256 (FIPS 180-4) behind so many whole blocks: eight words. */
export type Sha256State = Uint32Array;

export const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const WORD_BYTES = 4;
/** Of the last block, behind a byte that marks the end of the data. */
const LENGTH_AT = BLOCK_BYTES - 8;
const INITIAL: Sha256State = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);

/** Digests that begin at a state in the middle, for many messages that begin alike. */
export class Sha256States {
  readonly #sha256: Sha256Compression;
  readonly #digest = new Uint8Array(DIGEST_BYTES);

  constructor(sha256: Sha256Compression) {
    this.#sha256 = sha256;
  }

  /** Behind one block: the key, filled up with zeros, each byte with `pad` over it (RFC 2104). At most 64 bytes. */
  behindKey(key: Uint8Array, pad: number, from: Sha256State = INITIAL, to = newState()): Sha256State {
    const { state, block } = this.#sha256;
    state.set(from);
    block.fill(pad);
    for (let at = 0; at < key.length; at++) block[at] = (key[at] ?? 0) ^ pad;
    this.#sha256.compress();
    to.set(state);
    return to;
  }

  /**
   * The digest of what lies behind `from`, so many blocks, and of `data`, at most 55 bytes. The same memory each time, which
   * may be `data`.
   */
  finish(data: Uint8Array, from: Sha256State = INITIAL, blocks = 0): Uint8Array {
    const { state, block } = this.#sha256;
    if (data.length >= LENGTH_AT) throw new RangeError(`${data.length} bytes are more than a last block has`);
    state.set(from);
    block.fill(0);
    block.set(data);
    block[data.length] = 0x80;
    const bits = (blocks * BLOCK_BYTES + data.length) * 8;
    block[BLOCK_BYTES - 2] = bits >>> 8;
    block[BLOCK_BYTES - 1] = bits & 0xff;
    this.#sha256.compress();
    const digest = this.#digest;
    for (let index = 0, at = 0; at < DIGEST_BYTES; index++, at += WORD_BYTES) {
      const word = uint32At(state, index);
      digest[at] = word >>> 24;
      digest[at + 1] = word >>> 16;
      digest[at + 2] = word >>> 8;
      digest[at + 3] = word;
    }
    return digest;
  }
}

export const newState = (): Sha256State => new Uint32Array(INITIAL.length);
