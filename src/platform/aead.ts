/** The ciphers of the runtime's own libcrypto through FFI; a call costs a fraction of one through `node:crypto`. */
import { Evp } from "./linux/evp.ts";
import { SingleMessages } from "./linux/single-messages.ts";

export type { SingleMessage } from "./linux/single-messages.ts";

export const KEPT_AEAD_NAMES = ["aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-poly1305"] as const;
export type KeptAeadName = (typeof KEPT_AEAD_NAMES)[number];

/** One key with its contexts, made when they are first used. Nonces of 12 bytes, tags of 16, which follow the ciphertext. */
export interface KeptAead extends Disposable {
  readonly nonceBytes: number;
  /** Writes ciphertext and tag into `out` at `at`; answers with the offset behind the tag. Throws where they do not fit. */
  sealInto(out: Uint8Array, at: number, nonce: Uint8Array, plain: Uint8Array, aad?: Uint8Array): number;
  /**
   * Writes the plain bytes of `sealed`, which ends with its tag, into `out` at `at`; answers with the offset behind them,
   * or -1 where the tag is wrong, and then `out` has zeros there. Throws where they do not fit.
   */
  openInto(out: Uint8Array, at: number, nonce: Uint8Array, sealed: Uint8Array, aad?: Uint8Array): number;
  /**
   * Gives the context of one direction away: an address, valid in every thread of this process, whose new owner frees it;
   * made now where that direction was never used. The cipher is closed. Absent where there are no contexts.
   */
  giveAway?(direction: "sealing" | "opening"): bigint;
  /** Wipes and frees what the library keeps of the key. Sealing and opening throw from here on; twice is harmless. */
  [Symbol.dispose](): void;
}

interface Library {
  evp?: Evp | null;
  singles?: SingleMessages;
}
/** One library and one scratch memory for each thread, loaded at the first use and kept. */
const library: Library = {};

function loaded(): Evp | null {
  if (library.evp === undefined) library.evp = Evp.open();
  return library.evp;
}

/** Whether ciphers are kept here, and can be given away. */
export function canKeepAeads(): boolean {
  return loaded() !== null;
}

/** For a context that was given away, by whatever thread, and whose new owner is gone. */
export function freeGiven(context: bigint): void {
  loaded()?.free({ sealing: context, opening: 0n });
}

/**
 * Null when this system or runtime has no FFI or libcrypto: the caller uses `node:crypto`. `key` has the cipher's
 * length.
 */
export function keepAead(name: KeptAeadName, key: Uint8Array): KeptAead | null {
  return loaded()?.keep(name, key) ?? null;
}

/** Each under a key of its own. Null as `keepAead`; keys have the cipher's length. */
export function singleMessages(): SingleMessages | null {
  const evp = loaded();
  return evp === null ? null : (library.singles ??= new SingleMessages(evp));
}
