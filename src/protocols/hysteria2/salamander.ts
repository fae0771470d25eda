/**
 * Salamander: every datagram is SALT(8, random) and the packet XOR BLAKE2b-256(password and salt), repeated. Nothing is
 * authenticated: what is none of ours fails in QUIC.
 */
import { randomFillSync } from "node:crypto";
import { blake2b } from "@noble/hashes/blake2.js";
import { byteAt } from "#lib/at.ts";
import { quicLibrary } from "#platform/quic.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";

const SALT_BYTES = 8;
const HASH_BYTES = 32;
const WORD_BYTES = 4;
const MOST_DATAGRAM_BYTES = 65_535;
export const LEAST_PASSWORD_BYTES = 4;
/** Drawn at once: a call of the random generator for each datagram costs more than all else. */
const SALTS = 512;

export function salamander(password: string): PacketFilter {
  const mask = openMask(Buffer.from(password));
  const sealed = new Masked();
  const opened = new Masked();
  const salts = Buffer.alloc(SALTS * SALT_BYTES);
  let used = salts.length;
  return {
    overheadBytes: SALT_BYTES,
    seal(datagram, to, send) {
      if (used === salts.length) {
        randomFillSync(salts);
        used = 0;
      }
      const { bytes } = sealed;
      salts.copy(bytes, 0, used, used + SALT_BYTES);
      used += SALT_BYTES;
      const size = Math.min(datagram.length, MOST_DATAGRAM_BYTES - SALT_BYTES);
      bytes.set(datagram.length === size ? datagram : datagram.subarray(0, size), SALT_BYTES);
      sealed.apply(mask(bytes), size);
      send(bytes.subarray(0, SALT_BYTES + size), to);
    },
    open(datagram) {
      const size = datagram.length - SALT_BYTES;
      if (size <= 0 || datagram.length > MOST_DATAGRAM_BYTES) return null;
      opened.bytes.set(datagram);
      opened.apply(mask(datagram), size);
      return opened.bytes.subarray(SALT_BYTES, SALT_BYTES + size);
    },
  };
}

/** One datagram: a salt, and what the mask is applied to, four bytes at a time. */
class Masked {
  readonly bytes: Buffer;
  readonly #words: Uint32Array;

  constructor() {
    const memory = new ArrayBuffer(MOST_DATAGRAM_BYTES + 1);
    this.bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
  }

  /** To `size` bytes behind the salt. What stands behind them in their last word is not used. */
  apply(mask: Uint32Array, size: number): void {
    const words = this.#words;
    const end = Math.ceil((SALT_BYTES + size) / WORD_BYTES);
    for (let at = SALT_BYTES / WORD_BYTES, place = 0; at < end; at++, place = (place + 1) & 7)
      words[at] = (words[at] ?? 0) ^ (mask[place] ?? 0);
  }
}

/** Makes the mask of a datagram, whose salt comes first; lent until the next call. */
function openMask(password: Uint8Array): (datagram: Uint8Array) => Uint32Array {
  const native = quicLibrary()?.blake2b?.make(password, SALT_BYTES, HASH_BYTES) ?? null;
  if (native === null) {
    const key = blake2b.create({ dkLen: HASH_BYTES }).update(password);
    const words = new Uint32Array(HASH_BYTES / WORD_BYTES);
    const bytes = new Uint8Array(words.buffer);
    return (datagram) => {
      bytes.set(key.clone().update(datagram.subarray(0, SALT_BYTES)).digest());
      return words;
    };
  }
  const { tail, digest } = native;
  const words = new Uint32Array(digest.buffer);
  return (datagram) => {
    for (let at = 0; at < SALT_BYTES; at++) tail[at] = byteAt(datagram, at);
    native.run();
    return words;
  };
}
