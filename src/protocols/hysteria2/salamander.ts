/**
 * Salamander: every datagram is SALT(8, random) and the packet XOR BLAKE2b-256(password and salt), repeated. Nothing is
 * authenticated: what is none of ours fails in QUIC.
 */
import { randomFillSync } from "node:crypto";
import { blake2b } from "@noble/hashes/blake2.js";
import { byteAt } from "#lib/at.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";

const SALT_BYTES = 8;
const HASH_BYTES = 32;
const MOST_DATAGRAM_BYTES = 65_535;
export const LEAST_PASSWORD_BYTES = 4;
/** Drawn at once: a call of the random generator for each datagram costs more than all else. */
const SALTS = 512;

export function salamander(password: string): PacketFilter {
  const key = blake2b.create({ dkLen: HASH_BYTES }).update(Buffer.from(password));
  const sealed = Buffer.alloc(MOST_DATAGRAM_BYTES);
  const opened = Buffer.alloc(MOST_DATAGRAM_BYTES);
  const salts = Buffer.alloc(SALTS * SALT_BYTES);
  let used = salts.length;
  const mask = (salt: Uint8Array): Uint8Array => key.clone().update(salt).digest();
  return {
    overheadBytes: SALT_BYTES,
    seal(datagram, to, send) {
      if (used === salts.length) {
        randomFillSync(salts);
        used = 0;
      }
      salts.copy(sealed, 0, used, used + SALT_BYTES);
      used += SALT_BYTES;
      const size = Math.min(datagram.length, MOST_DATAGRAM_BYTES - SALT_BYTES);
      apply(mask(sealed.subarray(0, SALT_BYTES)), datagram, 0, sealed, SALT_BYTES, size);
      send(sealed.subarray(0, SALT_BYTES + size), to);
    },
    open(datagram) {
      const size = datagram.length - SALT_BYTES;
      if (size <= 0) return null;
      apply(mask(datagram.subarray(0, SALT_BYTES)), datagram, SALT_BYTES, opened, 0, size);
      return opened.subarray(0, size);
    },
  };
}

function apply(
  mask: Uint8Array,
  from: Uint8Array,
  fromAt: number,
  to: Uint8Array,
  toAt: number,
  size: number,
): void {
  for (let at = 0; at < size; at++)
    to[toAt + at] = byteAt(from, fromAt + at) ^ byteAt(mask, at & (HASH_BYTES - 1));
}
