/** Socket addresses as the kernel's structures hold them: sockaddr_in (ip(7)) and sockaddr_in6 (ipv6(7)). */
import { endianness } from "node:os";
import { byteAt } from "#lib/at.ts";

export const AF_INET = 2;
export const AF_INET6 = 10;
/** sockaddr_in6, the longer of the two. */
export const SOCKADDR_BYTES = 28;
export const SOCKADDR_IN_BYTES = 16;

/** 4 or 16 bytes in network order; an IPv4-mapped address may come as 16. */
export interface RawEndpoint {
  readonly address: Uint8Array;
  readonly port: number;
}

/** The index of the low byte of a 16-bit number, and of the low word of a 64-bit one. */
const LOW = endianness() === "LE" ? 0 : 1;

export function nativeUint16(bytes: Uint8Array, at: number): number {
  return (bytes[at + LOW] ?? 0) | ((bytes[at + 1 - LOW] ?? 0) << 8);
}

/** Null where it is neither family or too short. The address is a copy. */
export function decodeSockaddr(bytes: Uint8Array): RawEndpoint | null {
  if (bytes.length < SOCKADDR_IN_BYTES) return null;
  const family = nativeUint16(bytes, 0);
  const port = portOf(bytes);
  if (family === AF_INET) return { address: bytes.slice(4, 8), port };
  if (family !== AF_INET6 || bytes.length < SOCKADDR_BYTES) return null;
  return { address: bytes.slice(8, 24), port };
}

/**
 * How far into the sockaddr that begins at `start` the four bytes of an IPv4 address lie, which may be mapped into IPv6;
 * 0: it is no IPv4 address.
 */
export function v4At(bytes: Uint8Array, start = 0): number {
  if (nativeUint16(bytes, start) === AF_INET) return 4;
  for (let at = start + 8; at < start + 18; at++) if (bytes[at] !== 0) return 0;
  return bytes[start + 18] === 0xff && bytes[start + 19] === 0xff ? 20 : 0;
}

export function portOf(bytes: Uint8Array, start = 0): number {
  return (byteAt(bytes, start + 2) << 8) | byteAt(bytes, start + 3);
}

/** The key of a source in limits: an IPv4 address, or the first 64 bits of an IPv6 address, which one customer has. */
export function sourceOf(bytes: Uint8Array, start: number): number | string {
  const at = v4At(bytes, start);
  return at > 0
    ? uint32BeAt(bytes, start + at)
    : `${uint32BeAt(bytes, start + 8)}:${uint32BeAt(bytes, start + 12)}`;
}

const uint32BeAt = (bytes: Uint8Array, at: number): number =>
  ((byteAt(bytes, at) << 24) |
    (byteAt(bytes, at + 1) << 16) |
    (byteAt(bytes, at + 2) << 8) |
    byteAt(bytes, at + 3)) >>>
  0;

/** Bound to no address of its own. */
export function isWildcard(bytes: Uint8Array): boolean {
  const at = v4At(bytes);
  const [first, end] = at > 0 ? [at, at + 4] : [8, 24];
  return bytes.subarray(first, end).every((byte) => byte === 0);
}

// sockaddr_in:  FAMILY(2, native) PORT(2, big endian) ADDRESS(4) ZERO(8)
// sockaddr_in6: FAMILY(2, native) PORT(2, big endian) FLOWINFO(4) ADDRESS(16) SCOPE(4)
/** Writes into `into`, which has room for 28 bytes, and answers with the length. */
export function encodeSockaddr(into: Uint8Array, { address, port }: RawEndpoint): number {
  const v4 = address.length === 4;
  into.fill(0, 0, SOCKADDR_BYTES);
  into[LOW] = v4 ? AF_INET : AF_INET6;
  into[2] = port >> 8;
  into[3] = port & 0xff;
  into.set(address, v4 ? 4 : 8);
  return v4 ? SOCKADDR_IN_BYTES : SOCKADDR_BYTES;
}
