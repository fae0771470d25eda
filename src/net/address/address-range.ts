/** The addresses of a network by number, from the network's own on. */
import type { Ip, IpPrefix } from "#core/session.ts";
import { byteAt } from "#lib/at.ts";
import { bytesOfIp, ipFromBytes } from "./ip.ts";

export class AddressRange {
  /** The network itself. */
  readonly first: Ip;
  readonly bits: number;
  readonly #network: Uint8Array;

  constructor({ ip, bits }: IpPrefix) {
    this.bits = bits;
    this.#network = withOffset(bytesOfIp(ip), bits, 0);
    this.first = ipFromBytes(this.#network);
  }

  /** Of an address. */
  get hostBits(): number {
    return this.#network.length * 8 - this.bits;
  }

  at(offset: number): Ip {
    return ipFromBytes(withOffset(this.#network, this.bits, offset));
  }

  /** Null: outside the network. Not exact beyond 53 bits. */
  offsetOf(ip: Ip): number | null {
    const bytes = bytesOfIp(ip);
    if (bytes.length !== this.#network.length) return null;
    let offset = 0;
    for (let at = 0; at < bytes.length; at++) {
      const keep = Math.max(0, Math.min(8, this.bits - at * 8));
      const mask = (0xff << (8 - keep)) & 0xff;
      const byte = byteAt(bytes, at);
      if ((byte & mask) !== this.#network[at]) return null;
      offset = offset * 256 + (byte & ~mask & 0xff);
    }
    return offset;
  }
}

/** The address with its host bits replaced by the offset. */
function withOffset(address: Uint8Array, bits: number, offset: number): Uint8Array {
  const bytes = Uint8Array.from(address);
  let rest = offset;
  for (let at = bytes.length - 1; at * 8 + 8 > bits; at--) {
    const mask = (0xff << (8 - Math.max(0, bits - at * 8))) & 0xff;
    bytes[at] = (byteAt(bytes, at) & mask) | (rest & ~mask & 0xff);
    rest = Math.floor(rest / 256);
  }
  return bytes;
}
