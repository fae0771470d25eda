/** An IP packet as it lies in a buffer (RFC 791, RFC 8200): read in place, nothing is copied, nothing is allocated. */
import type { Cidr } from "#net/address/cidr.ts";
import { PACKET_AT } from "#platform/tun.ts";
import { byteAt } from "#lib/at.ts";

export const ICMP = 1;
export const TCP = 6;
export const UDP = 17;
export const ICMP6 = 58;

const HOP_BY_HOP = 0;
const ROUTING = 43;
export const FRAGMENT = 44;
const DESTINATION_OPTIONS = 60;
/** No honest packet has a longer chain of extension headers. */
const MOST_EXTENSIONS = 8;

/** The least that IPv6 works with (RFC 8200 §5). */
export const LEAST_MTU = 1280;
export const V4_HEADER_BYTES = 20;
export const V6_HEADER_BYTES = 40;
export const UDP_HEADER_BYTES = 8;
export const TCP_HEADER_BYTES = 20;
/** Of IPv6 (RFC 8200 §4.5). */
export const FRAGMENT_HEADER_BYTES = 8;
const ICMP_HEADER_BYTES = 8;

const SHORTEST: Readonly<Record<number, number>> = {
  [TCP]: TCP_HEADER_BYTES,
  [UDP]: UDP_HEADER_BYTES,
  [ICMP]: ICMP_HEADER_BYTES,
  [ICMP6]: ICMP_HEADER_BYTES,
};

/** One packet after the other; the offsets are into `view`. */
export class Packet {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  family: 4 | 6 = 4;
  /** Of the transport: `TCP`, `UDP`, `ICMP`, `ICMP6`. */
  protocol = 0;
  /** Offsets of source and destination. */
  sourceAt = 0;
  destinationAt = 0;
  /** 4 or 16. */
  addressBytes = 4;
  /** The transport header, which is there in its shortest form, and the end of its payload. */
  transportAt = 0;
  end = 0;

  constructor(view: DataView) {
    this.view = view;
    this.bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  }

  /** The whole IP packet's length; what lay behind it in the buffer does not count. */
  get length(): number {
    return this.end - PACKET_AT;
  }

  get sourcePort(): number {
    return this.view.getUint16(this.transportAt);
  }

  get destinationPort(): number {
    return this.view.getUint16(this.transportAt + 2);
  }

  /**
   * False: not to be handled. Malformed, a fragment, another transport than TCP, UDP and ICMP, or addresses that no
   * connection can have (multicast, broadcast, link-local, loopback, unspecified).
   */
  read(length: number): boolean {
    if (length < V4_HEADER_BYTES) return false;
    const version = byteAt(this.bytes, PACKET_AT) >> 4;
    const readable = version === 4 ? this.#read4(length) : version === 6 && this.#read6(length);
    if (!readable || this.end - this.transportAt < (SHORTEST[this.protocol] ?? Infinity)) return false;
    return this.#isUnicast(this.sourceAt) && this.#isUnicast(this.destinationAt);
  }

  // VERSION(4 bits) IHL(4 bits) TOS(1) LENGTH(2) ID(2) FLAGS+OFFSET(2) TTL(1) PROTOCOL(1) CHECKSUM(2) SRC(4) DST(4)
  #read4(length: number): boolean {
    const headerBytes = (byteAt(this.bytes, PACKET_AT) & 0x0f) * 4;
    const total = this.view.getUint16(PACKET_AT + 2);
    if (headerBytes < V4_HEADER_BYTES || total < headerBytes || total > length) return false;
    if ((this.view.getUint16(PACKET_AT + 6) & 0x3fff) !== 0) return false; // more fragments, or not the first
    this.family = 4;
    this.protocol = byteAt(this.bytes, PACKET_AT + 9);
    this.sourceAt = PACKET_AT + 12;
    this.destinationAt = PACKET_AT + 16;
    this.addressBytes = 4;
    this.transportAt = PACKET_AT + headerBytes;
    this.end = PACKET_AT + total;
    return this.protocol !== ICMP6;
  }

  // VERSION(4 bits) CLASS(1) FLOW(20 bits) LENGTH(2) NEXT(1) HOPS(1) SRC(16) DST(16)
  #read6(length: number): boolean {
    if (length < V6_HEADER_BYTES) return false;
    const end = PACKET_AT + V6_HEADER_BYTES + this.view.getUint16(PACKET_AT + 4);
    if (end > PACKET_AT + length) return false;
    let next = byteAt(this.bytes, PACKET_AT + 6);
    let at = PACKET_AT + V6_HEADER_BYTES;
    for (let walked = 0; next === HOP_BY_HOP || next === ROUTING || next === DESTINATION_OPTIONS; walked++) {
      if (walked === MOST_EXTENSIONS || at + 8 > end) return false;
      next = byteAt(this.bytes, at);
      at += (byteAt(this.bytes, at + 1) + 1) * 8;
    }
    if (at > end) return false;
    this.family = 6;
    this.protocol = next;
    this.sourceAt = PACKET_AT + 8;
    this.destinationAt = PACKET_AT + 24;
    this.addressBytes = 16;
    this.transportAt = at;
    this.end = end;
    return next !== ICMP;
  }

  #isUnicast(at: number): boolean {
    const first = byteAt(this.bytes, at);
    const second = byteAt(this.bytes, at + 1);
    if (this.family === 4)
      return first !== 0 && first !== 127 && first < 224 && !(first === 169 && second === 254);
    if (first === 0xff || (first === 0xfe && (second & 0xc0) === 0x80)) return false;
    const { view } = this;
    if (view.getInt32(at) !== 0 || view.getInt32(at + 4) !== 0) return true;
    const third = view.getInt32(at + 8);
    if (third === 0xffff) return false; // IPv4-mapped: never on a wire
    return third !== 0 || view.getUint32(at + 12) > 1; // :: and ::1
  }

  /** Does the network contain the address at offset `at`? */
  isWithin(at: number, { bytes, bits }: Cidr): boolean {
    if (bytes.length !== this.addressBytes) return false;
    const whole = bits >> 3;
    for (let index = 0; index < whole; index++) if (this.bytes[at + index] !== bytes[index]) return false;
    if ((bits & 7) === 0) return true;
    return ((byteAt(this.bytes, at + whole) ^ byteAt(bytes, whole)) & (0xff00 >> (bits & 7)) & 0xff) === 0;
  }

  /** Is the address at offset `at` this one? */
  hasAt(at: number, address: Uint8Array): boolean {
    if (address.length !== this.addressBytes) return false;
    for (let index = 0; index < address.length; index++)
      if (this.bytes[at + index] !== address[index]) return false;
    return true;
  }
}
