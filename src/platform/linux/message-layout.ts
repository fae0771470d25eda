/** The structures of recvmmsg(2) and sendmmsg(2) as words of 32 bits, for memory that is made once. 64-bit layouts. */
import type * as Ffi from "node:ffi";
import { uint32At } from "#lib/at.ts";

// mmsghdr: NAME*(8) NAMELEN(4) PAD(4) IOV*(8) IOVLEN(8) CONTROL*(8) CONTROLLEN(8) FLAGS(4) PAD(4) LEN(4) PAD(4)
export const HEADER_WORDS = 16;
export const HEADER_BYTES = HEADER_WORDS * 4;
export const NAME_WORD = 0;
export const NAME_LENGTH_WORD = 2;
export const VECTORS_WORD = 4;
export const VECTOR_COUNT_WORD = 6;
export const CONTROL_WORD = 8;
export const CONTROL_LENGTH_WORD = 10;
export const FLAGS_WORD = 12;
export const LENGTH_WORD = 14;

// iovec: BASE*(8) LENGTH(8)
export const VECTOR_WORDS = 4;
export const VECTOR_LENGTH_WORD = 2;

/** Name slots start at multiples of this. */
export const NAME_BYTES = 32;

/** udp(7). */
export const SOL_UDP = 17;
export const UDP_SEGMENT = 103;
export const UDP_GRO = 104;

const WORD = 2 ** 32;
/** Of the two words of a 64-bit number. */
const LOW = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 0 : 1;

/** User space ends far below 2^53, so that a number holds any address and arithmetic makes no BigInt. */
export function addressOf(ffi: typeof Ffi, memory: Uint8Array | Uint32Array): number {
  return Number(ffi.getRawPointer(memory));
}

/** Writes a 64-bit number below 2^53. */
export function setLong(words: Uint32Array, at: number, value: number): void {
  words[at + LOW] = value % WORD;
  words[at + 1 - LOW] = value / WORD;
}

/** Reads a 64-bit number that is known to be below 2^32. */
export function lowWord(words: Uint32Array, at: number): number {
  return uint32At(words, at + LOW);
}
