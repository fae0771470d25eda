/** Packets that are made here: UDP replies, resets, ICMP errors (RFC 768, 792, 4443, 9293 §3.10.7.1). */
import { MOST_PACKET_BYTES, PACKET_AT, type PacketDevice } from "#platform/tun.ts";
import { DatagramWriter } from "./datagram-writer.ts";
import { PacketBuilder } from "./packet-builder.ts";
import { ICMP, ICMP6, LEAST_MTU, TCP, TCP_HEADER_BYTES, UDP, UDP_HEADER_BYTES } from "#net/packet/packet.ts";
import { type Packet, V4_HEADER_BYTES, V6_HEADER_BYTES } from "#net/packet/packet.ts";
import { PathMtus } from "./path-mtus.ts";
import { byteAt } from "#lib/at.ts";

/** An ICMP error is not longer than this (RFC 1812 §4.3.2.3, RFC 4443 §2.4). */
const MOST_ERROR_BYTES = { 4: 576, 6: 1280 } as const;

const FIN = 0x01;
const SYN = 0x02;
const RST = 0x04;
const ACK = 0x10;

/** What cannot be reached: ICMP type and code of both families. */
const UNREACHABLE = {
  port: { 4: [3, 3], 6: [1, 4] },
  host: { 4: [3, 1], 6: [1, 3] },
} as const;

export class PacketWriter {
  /** See `DatagramWriter.write`. */
  readonly udp: DatagramWriter["write"];
  /** What is known of the ways to clients. */
  readonly paths = { 4: new PathMtus(4), 6: new PathMtus(6) } as const;
  readonly #builder: PacketBuilder;
  readonly #mtu: number;

  constructor(device: PacketDevice, mtu: number) {
    this.#builder = new PacketBuilder(device);
    this.#mtu = mtu;
    const datagrams = new DatagramWriter(this.#builder, mtu, this.paths[6]);
    this.udp = datagrams.write.bind(datagrams);
  }

  /**
   * The longest payload that arrives at once between addresses of so many bytes. Behind the TUN a way may be narrower than it
   * is; there a packet of IPv4 is cut, and one of IPv6 lost.
   */
  udpRoom(addressBytes: number): number {
    return addressBytes === 4
      ? MOST_PACKET_BYTES - V4_HEADER_BYTES - UDP_HEADER_BYTES
      : LEAST_MTU - V6_HEADER_BYTES - UDP_HEADER_BYTES;
  }

  /** Refuses the flow of a TCP segment that is no reset itself. */
  reset(packet: Packet, flags: number): void {
    const { view, transportAt, end } = packet;
    const at = this.#answerTo(packet, TCP, TCP_HEADER_BYTES);
    const out = this.#builder.view;
    const acknowledged = (flags & ACK) !== 0;
    const dataAt = transportAt + (byteAt(packet.bytes, transportAt + 12) >> 4) * 4;
    const taken = Math.max(0, end - dataAt) + ((flags & SYN) === 0 ? 0 : 1) + ((flags & FIN) === 0 ? 0 : 1);
    out.setUint16(at, packet.destinationPort);
    out.setUint16(at + 2, packet.sourcePort);
    out.setUint32(at + 4, acknowledged ? view.getUint32(transportAt + 8) : 0);
    out.setUint32(at + 8, acknowledged ? 0 : view.getUint32(transportAt + 4) + taken);
    out.setUint8(at + 12, (TCP_HEADER_BYTES / 4) << 4);
    out.setUint8(at + 13, acknowledged ? RST : RST | ACK);
    out.setUint32(at + 14, 0); // window, checksum
    out.setUint16(at + 18, 0);
    this.#builder.finish(at, 16, TCP, TCP_HEADER_BYTES);
  }

  /** An ICMP error about a packet, as if its destination had sent it. */
  unreachable(packet: Packet, what: keyof typeof UNREACHABLE): void {
    const { bytes, sourceAt, destinationAt, addressBytes, end } = packet;
    const from = bytes.subarray(destinationAt, destinationAt + addressBytes);
    const to = bytes.subarray(sourceAt, sourceAt + addressBytes);
    this.unreachableFrom(from, to, bytes.subarray(PACKET_AT, end), what);
  }

  /** The same about `about`, a whole IP packet that went from `client` to `destination`. */
  unreachableFrom(
    destination: Uint8Array,
    client: Uint8Array,
    about: Uint8Array,
    what: keyof typeof UNREACHABLE,
  ): void {
    const family = client.length === 4 ? 4 : 6;
    const headerBytes = (family === 4 ? V4_HEADER_BYTES : V6_HEADER_BYTES) + 8;
    const quoted = Math.min(about.length, MOST_ERROR_BYTES[family] - headerBytes);
    const protocol = family === 4 ? ICMP : ICMP6;
    const at = this.#builder.header(destination, client, protocol, 8 + quoted);
    const [type, code] = UNREACHABLE[what][family];
    this.#builder.view.setUint8(at, type);
    this.#builder.view.setUint8(at + 1, code);
    this.#builder.view.setUint16(at + 2, 0);
    this.#builder.view.setUint32(at + 4, 0);
    this.#builder.bytes.set(about.subarray(0, quoted), at + 8);
    this.#builder.finish(at, 2, protocol, 8 + quoted);
  }

  /** An ICMP error about a datagram from `client` of which only source and destination are left: its headers are made anew. */
  portUnreachable(destination: Uint8Array, port: number, client: Uint8Array, clientPort: number): void {
    const at = this.#builder.header(client, destination, UDP, UDP_HEADER_BYTES);
    this.#builder.view.setUint16(at, clientPort);
    this.#builder.view.setUint16(at + 2, port);
    this.#builder.view.setUint16(at + 4, UDP_HEADER_BYTES);
    this.#builder.view.setUint16(at + 6, 0);
    const about = this.#builder.bytes.slice(PACKET_AT, at + UDP_HEADER_BYTES);
    this.unreachableFrom(destination, client, about, "port");
  }

  /** An ICMP message with a zero checksum field, the checksum filled in. False: longer than the MTU, not sent. */
  icmp(source: Uint8Array, destination: Uint8Array, message: Uint8Array): boolean {
    const family = source.length === 4 ? 4 : 6;
    const headerBytes = family === 4 ? V4_HEADER_BYTES : V6_HEADER_BYTES;
    if (headerBytes + message.length > this.#mtu) return false;
    const protocol = family === 4 ? ICMP : ICMP6;
    const at = this.#builder.header(source, destination, protocol, message.length);
    this.#builder.bytes.set(message, at);
    this.#builder.finish(at, 2, protocol, message.length);
    return true;
  }

  #answerTo(
    { bytes, sourceAt, destinationAt, addressBytes }: Packet,
    protocol: number,
    length: number,
  ): number {
    const from = bytes.subarray(destinationAt, destinationAt + addressBytes);
    const to = bytes.subarray(sourceAt, sourceAt + addressBytes);
    return this.#builder.header(from, to, protocol, length);
  }
}
