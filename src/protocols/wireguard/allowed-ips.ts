import { cidrHolds, type Cidr } from "#net/address/cidr.ts";

const V4 = 4;
const V6 = 6;
const V4_LENGTH_AT = 2;
const V6_LENGTH_AT = 4;
const V6_HEADER_BYTES = 40;

/** Where the addresses of a packet are (RFC 791, RFC 8200). */
const ADDRESSES = {
  [V4]: { bytes: 4, source: 12, destination: 16, least: 20 },
  [V6]: { bytes: 16, source: 8, destination: 24, least: V6_HEADER_BYTES },
} as const;

type End = "source" | "destination";

/** Whose packets are whose: each address belongs to the peer with the longest network that holds it. */
export class AllowedIps<Owner> {
  readonly #entries: readonly { readonly cidr: Cidr; readonly owner: Owner }[];

  constructor(entries: readonly { readonly cidr: Cidr; readonly owner: Owner }[]) {
    this.#entries = entries.toSorted((left, right) => right.cidr.bits - left.cidr.bits);
  }

  /** Null: no peer has that address. */
  ownerOf(address: Uint8Array): Owner | null {
    for (const { cidr, owner } of this.#entries) if (cidrHolds(cidr, address)) return owner;
    return null;
  }
}

/** Of a packet that begins at `at` and has its whole header; empty where it is none. A view of the same memory. */
export function addressIn(bytes: Uint8Array, at: number, end: End): Uint8Array {
  const family = versionAt(bytes, at);
  if (family === null) return bytes.subarray(0, 0);
  const { [end]: offset, bytes: count } = ADDRESSES[family];
  return bytes.subarray(at + offset, at + offset + count);
}

/** The length that the packet itself says; -1 where it is none, or longer than `most`. What follows it is padding. */
export function packetBytes(bytes: Uint8Array, at: number, most: number): number {
  const family = most <= 0 ? null : versionAt(bytes, at);
  if (family === null || most < ADDRESSES[family].least) return -1;
  const lengthAt = at + (family === V4 ? V4_LENGTH_AT : V6_LENGTH_AT);
  const said = ((bytes[lengthAt] ?? 0) << 8) | (bytes[lengthAt + 1] ?? 0);
  const length = family === V4 ? said : said + V6_HEADER_BYTES;
  return length >= ADDRESSES[family].least && length <= most ? length : -1;
}

function versionAt(bytes: Uint8Array, at: number): typeof V4 | typeof V6 | null {
  const version = (bytes[at] ?? 0) >> 4;
  return version === V4 || version === V6 ? version : null;
}
