/**
 * Functions of one block by the runtime's own libcrypto through FFI, for keys and masks of which a connection needs many. A
 * call of `node:crypto` takes twenty times as long. Null where there is no FFI.
 */
import { BlockCipher } from "./linux/block-cipher.ts";
import { Sha256 } from "./linux/sha256.ts";
import { Shake128 } from "./linux/shake128.ts";

/** SHA-256's compression function, in memory of the thread. */
export interface Sha256Compression {
  /** Eight words, as numbers. */
  readonly state: Uint32Array;
  /** 64 bytes. */
  readonly block: Uint8Array;
  /** `block` into `state`. */
  compress(): void;
}

interface Library {
  sha256?: Sha256 | null;
  shake128?: Shake128 | null;
  blocks?: BlockCipher | null;
}
/** One of each for each thread, loaded at the first use and kept. */
const library: Library = {};

export function sha256Compression(): Sha256Compression | null {
  if (library.sha256 === undefined) library.sha256 = Sha256.open();
  return library.sha256;
}

/** The first 168 bytes of SHAKE128, of a seed of 64 bytes at most. */
export function shake128Block(seed: Uint8Array): Uint8Array | null {
  if (library.shake128 === undefined) library.shake128 = Shake128.open();
  return library.shake128?.firstBlock(seed) ?? null;
}

/** AES-128 of single blocks. */
export function blockCipher(): BlockCipher | null {
  if (library.blocks === undefined) library.blocks = BlockCipher.open();
  return library.blocks;
}
