/** The control messages beside the payload of a datagram (cmsg(3), ip(7), ipv6(7)); 64-bit layouts. */
import { SOL_UDP, UDP_GRO } from "./message-layout.ts";
import { decodeSockaddr, nativeUint16, type RawEndpoint } from "./sockaddr.ts";
import { byteAt } from "#lib/at.ts";

export const SOL_IP = 0;
export const SOL_IPV6 = 41;
/** The same number asks for the message and marks it. */
export const IP_ORIGDSTADDR = 20;
export const IPV6_ORIGDSTADDR = 74;
/** Of a redirected connection: the same number in both families (linux/netfilter_ipv4.h, ip6_tables.h). */
export const SO_ORIGINAL_DST = 80;
export const IP_TOS = 1;
export const IPV6_TCLASS = 67;
const ECN_BITS = 3;

export interface Control {
  /** Where the datagram was going before it was captured. */
  readonly original: RawEndpoint | null;
  /** DSCP code point, 0–63. */
  readonly dscp: number | null;
  /** The two bits beside it (RFC 3168 §5); 0: unmarked, or not told. */
  readonly ecn: number;
  /** Of a run that the kernel has put together (UDP_GRO): the length of each datagram but the last. 0: it is one. */
  readonly segmentBytes: number;
}

export const NO_CONTROL: Control = { original: null, dscp: null, ecn: 0, segmentBytes: 0 };

const HEADER_BYTES = 16;
const ALIGNMENT = 8;

// cmsghdr: LEN(8, header included) LEVEL(4) TYPE(4), then data; the next one begins at a multiple of 8. All native.
/** Unknown messages are passed over; a length that does not fit ends the reading. */
export function readControl(bytes: Uint8Array): Control {
  let original: RawEndpoint | null = null;
  let tos: number | null = null;
  let segmentBytes = 0;
  for (let at = 0; at + HEADER_BYTES <= bytes.length;) {
    const length = nativeLength(bytes, at);
    if (length < HEADER_BYTES || at + length > bytes.length) break;
    const level = nativeInt32(bytes, at + 8);
    const type = nativeInt32(bytes, at + 12);
    const data = bytes.subarray(at + HEADER_BYTES, at + length);
    if ((level === SOL_IP && type === IP_ORIGDSTADDR) || (level === SOL_IPV6 && type === IPV6_ORIGDSTADDR))
      original = decodeSockaddr(data);
    else if (level === SOL_IP && type === IP_TOS && data.length > 0) tos = byteAt(data, 0);
    else if (level === SOL_IPV6 && type === IPV6_TCLASS && data.length >= 4)
      tos = nativeInt32(data, 0) & 0xff;
    else if (level === SOL_UDP && type === UDP_GRO && data.length >= 4)
      segmentBytes = Math.max(0, nativeInt32(data, 0));
    at += Math.ceil(length / ALIGNMENT) * ALIGNMENT;
  }
  return { original, dscp: tos === null ? null : tos >> 2, ecn: (tos ?? 0) & ECN_BITS, segmentBytes };
}

const LITTLE_ENDIAN = nativeUint16(Uint8Array.of(1, 0), 0) === 1;

function nativeInt32(bytes: Uint8Array, at: number): number {
  const [low, high] = LITTLE_ENDIAN ? [at, at + 2] : [at + 2, at];
  return nativeUint16(bytes, low) | (nativeUint16(bytes, high) << 16);
}

/** Control buffers are far below 64 KiB, so a length that needs more than 16 bits is no length. */
function nativeLength(bytes: Uint8Array, at: number): number {
  const words = [0, 2, 4, 6].map((offset) => nativeUint16(bytes, at + offset));
  if (!LITTLE_ENDIAN) words.reverse();
  const [low = 0, ...rest] = words;
  return rest.every((word) => word === 0) ? low : 0;
}
