/**
 * TCP segments of one connection that come one behind another go to the kernel as one, which it takes as if a network card had
 * joined them: its work, and the acknowledgements that it sends, are per packet.
 */
import { fold, pseudoSum, sumOf } from "#net/packet/checksum.ts";
import { Packet, TCP, V4_HEADER_BYTES } from "#net/packet/packet.ts";
import { byteAt } from "#lib/at.ts";
import {
  MOST_PACKET_BYTES,
  NEEDS_CHECKSUM,
  PACKET_AT,
  type PacketDevice,
  VNET_BYTES,
} from "#platform/tun.ts";

const GSO_TCP4 = 1;
const GSO_TCP6 = 4;
const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

// TCP header (RFC 9293, 3.1): PORTS(4) SEQUENCE(4) ACKNOWLEDGEMENT(4) LENGTH(4 bits) FLAGS(12 bits) WINDOW(2) CHECKSUM(2) URGENT(2)
const SEQUENCE_AT = 4;
const ACKNOWLEDGEMENT_AT = 8;
const LENGTH_AT = 12;
const FLAGS_AT = 13;
const CHECKSUM_AT = 16;
const URGENT_AT = 18;
const ACK = 0x10;
const PSH = 0x08;

/** Packets come in `packet`, and leave by `device` at the latest with `flush`. */
export class JoinedSegments {
  readonly packet: Packet;
  readonly #device: PacketDevice;
  readonly #joined: Packet;
  /** Segments in the outgoing buffer; 0: nothing waits. */
  #count = 0;
  /** Payload of each of them but the last. */
  #segmentBytes = 0;
  #isFull = false;
  #nextSequence = 0;

  constructor(device: PacketDevice) {
    this.#device = device;
    this.#joined = new Packet(device.outgoing.view);
    this.packet = new Packet(new DataView(new ArrayBuffer(PACKET_AT + MOST_PACKET_BYTES)));
  }

  /** What lies in `packet`, so long. */
  add(length: number): void {
    const isSegment = this.packet.read(length) && isPlainSegment(this.packet) && hasRightSums(this.packet);
    if (isSegment && this.#follows()) return this.#append();
    this.flush();
    this.#device.outgoing.bytes.set(this.packet.bytes.subarray(PACKET_AT, PACKET_AT + length), PACKET_AT);
    if (!isSegment || !this.#joined.read(length)) return this.#write(length);
    this.#count = 1;
    this.#segmentBytes = payloadBytes(this.#joined);
    this.#noteEnd(this.#joined);
  }

  /** Nothing waits any longer. */
  flush(): void {
    if (this.#count > 1) this.#finish();
    if (this.#count > 0) this.#write(this.#joined.length);
    this.#count = 0;
    this.#isFull = false;
  }

  #write(length: number): void {
    this.#device.write(this.#device.outgoing, length);
    this.#device.outgoing.bytes.fill(0, 0, VNET_BYTES);
  }

  #follows(): boolean {
    if (this.#count === 0 || this.#isFull) return false;
    const { packet } = this;
    const joined = this.#joined;
    const headBytes = packet.end - payloadBytes(packet) - PACKET_AT;
    return (
      packet.view.getUint32(packet.transportAt + SEQUENCE_AT) === this.#nextSequence &&
      payloadBytes(packet) <= this.#segmentBytes &&
      joined.length + payloadBytes(packet) <= MOST_PACKET_BYTES &&
      packet.family === joined.family &&
      isSameHead(packet.bytes, joined.bytes, packet, headBytes)
    );
  }

  #append(): void {
    const { packet } = this;
    const joined = this.#joined;
    const bytes = payloadBytes(packet);
    joined.bytes.set(packet.bytes.subarray(packet.end - bytes, packet.end), joined.end);
    joined.end += bytes;
    this.#count++;
    this.#noteEnd(packet);
  }

  /** A segment that is shorter than the others, or asks to be passed on, is the last one. */
  #noteEnd(segment: Packet): void {
    const { view, transportAt } = segment;
    const bytes = payloadBytes(segment);
    this.#nextSequence = (view.getUint32(transportAt + SEQUENCE_AT) + bytes) >>> 0;
    const pushes = (view.getUint8(transportAt + FLAGS_AT) & PSH) !== 0;
    if (pushes) this.#joined.view.setUint8(this.#joined.transportAt + FLAGS_AT, ACK | PSH);
    this.#isFull = pushes || bytes < this.#segmentBytes;
  }

  /** Length and sums of the whole, and what the kernel has to know of its parts. */
  #finish(): void {
    const { view, transportAt, family, end, sourceAt, addressBytes } = this.#joined;
    if (family === 4) {
      view.setUint16(PACKET_AT + 2, end - PACKET_AT);
      view.setUint16(PACKET_AT + 10, 0);
      view.setUint16(PACKET_AT + 10, 0xffff - fold(sumOf(view, PACKET_AT, PACKET_AT + V4_HEADER_BYTES)));
    } else view.setUint16(PACKET_AT + 4, end - transportAt);
    const sum = pseudoSum(view, sourceAt, addressBytes, TCP, end - transportAt);
    view.setUint16(transportAt + CHECKSUM_AT, fold(sum));
    view.setUint8(0, NEEDS_CHECKSUM);
    view.setUint8(1, family === 4 ? GSO_TCP4 : GSO_TCP6);
    view.setUint16(2, transportAt + headerBytes(this.#joined) - VNET_BYTES, LITTLE_ENDIAN);
    view.setUint16(4, this.#segmentBytes, LITTLE_ENDIAN);
    view.setUint16(6, transportAt - VNET_BYTES, LITTLE_ENDIAN);
    view.setUint16(8, CHECKSUM_AT, LITTLE_ENDIAN);
  }
}

/** One with payload that only acknowledges, below an IP header without options. */
function isPlainSegment(packet: Packet): boolean {
  const { protocol, view, transportAt, sourceAt, addressBytes } = packet;
  if (protocol !== TCP || transportAt !== sourceAt + 2 * addressBytes) return false;
  const flags = view.getUint8(transportAt + FLAGS_AT);
  return (
    (flags === ACK || flags === (ACK | PSH)) &&
    payloadBytes(packet) > 0 &&
    headerBytes(packet) >= URGENT_AT + 2
  );
}

/** The kernel believes those of what is joined. */
function hasRightSums({ view, family, sourceAt, addressBytes, transportAt, end }: Packet): boolean {
  if (family === 4 && fold(sumOf(view, PACKET_AT, transportAt)) !== 0xffff) return false;
  const pseudo = pseudoSum(view, sourceAt, addressBytes, TCP, end - transportAt);
  return fold(sumOf(view, transportAt, end, pseudo)) === 0xffff;
}

function headerBytes({ view, transportAt }: Packet): number {
  return (view.getUint8(transportAt + LENGTH_AT) >> 4) * 4;
}

/** Negative where the header says that it is longer than the packet. */
function payloadBytes(packet: Packet): number {
  return packet.end - packet.transportAt - headerBytes(packet);
}

/** But for lengths, identification, sums, sequence and PSH. */
function isSameHead(left: Uint8Array, right: Uint8Array, packet: Packet, length: number): boolean {
  const tcp = packet.transportAt - PACKET_AT;
  for (let at = 0; at < length; at++) {
    if (packet.family === 4 ? (at >= 2 && at < 6) || at === 10 || at === 11 : at === 4 || at === 5) continue;
    if (at >= tcp + SEQUENCE_AT && at < tcp + ACKNOWLEDGEMENT_AT) continue;
    if (at === tcp + FLAGS_AT || at === tcp + CHECKSUM_AT || at === tcp + CHECKSUM_AT + 1) continue;
    if (byteAt(left, PACKET_AT + at) !== byteAt(right, PACKET_AT + at)) return false;
  }
  return true;
}
