/** What a hop says of a packet that was too long for it (RFC 792, RFC 1191 §4, RFC 4443 §3.2). */
import { fold, pseudoSum, sumOf } from "#net/packet/checksum.ts";
import { FRAGMENT, FRAGMENT_HEADER_BYTES, ICMP, ICMP6, type Packet } from "#net/packet/packet.ts";
import { V4_HEADER_BYTES, V6_HEADER_BYTES } from "#net/packet/packet.ts";
import { byteAt } from "#lib/at.ts";

const ICMP_HEADER_BYTES = 8;
const PORTS_BYTES = 4;

/** Of the packet that was too long; offsets into the one that says so. */
export interface TooBig {
  readonly mtu: number;
  readonly protocol: number;
  /** Addresses: source, right behind it destination. */
  readonly addressesAt: number;
  /** Source port, destination port. */
  readonly portsAt: number;
}

/** Null: it says something else, is damaged, or quotes no ports. */
export function readTooBig(packet: Packet): TooBig | null {
  const { view, bytes, protocol, transportAt, end } = packet;
  const said = view.getUint16(transportAt);
  if (said !== (protocol === ICMP ? 0x0304 : 0x0200) || !isWhole(packet)) return null;
  const at = transportAt + ICMP_HEADER_BYTES;
  if (at + (protocol === ICMP ? V4_HEADER_BYTES : V6_HEADER_BYTES) > end) return null;
  const found = protocol === ICMP ? quoted4(packet, at) : quoted6(packet, at);
  if (found === null || found.portsAt + PORTS_BYTES > end) return null;
  return byteAt(bytes, at) >> 4 === packet.family ? found : null;
}

function quoted4({ view, bytes, transportAt }: Packet, at: number): TooBig | null {
  if ((view.getUint16(at + 6) & 0x1fff) !== 0) return null; // not the first fragment
  return {
    mtu: view.getUint16(transportAt + 6),
    protocol: byteAt(bytes, at + 9),
    addressesAt: at + 12,
    portsAt: at + (byteAt(bytes, at) & 0x0f) * 4,
  };
}

function quoted6({ view, bytes, transportAt, end }: Packet, at: number): TooBig | null {
  const behind = at + V6_HEADER_BYTES;
  const isCut = byteAt(bytes, at + 6) === FRAGMENT;
  if (isCut && (behind + FRAGMENT_HEADER_BYTES > end || view.getUint16(behind + 2) >> 3 !== 0)) return null;
  return {
    mtu: view.getUint32(transportAt + 4),
    protocol: byteAt(bytes, isCut ? behind : at + 6),
    addressesAt: at + 8,
    portsAt: isCut ? behind + FRAGMENT_HEADER_BYTES : behind,
  };
}

function isWhole({ view, protocol, sourceAt, addressBytes, transportAt, end }: Packet): boolean {
  const pseudo = protocol === ICMP ? 0 : pseudoSum(view, sourceAt, addressBytes, ICMP6, end - transportAt);
  return fold(sumOf(view, transportAt, end, pseudo)) === 0xffff;
}
