/** IP packets in the outgoing buffer of a TUN: headers, sums (RFC 791, 8200, 1071), and off they go. */
import { randomInt } from "node:crypto";
import { GSO_UDP, PACKET_AT, type PacketDevice } from "#platform/tun.ts";
import { fold, pseudoSum, sumOf } from "#net/packet/checksum.ts";
import { FRAGMENT, FRAGMENT_HEADER_BYTES, ICMP, UDP, UDP_HEADER_BYTES } from "#net/packet/packet.ts";
import { V4_HEADER_BYTES, V6_HEADER_BYTES } from "#net/packet/packet.ts";
import { leaveChecksum, leaveCutting } from "./virtio-header.ts";

const HOP_LIMIT = 64;
const MORE_FRAGMENTS_V4 = 0x2000;
const MORE_FRAGMENTS_V6 = 0x0001;

export class PacketBuilder {
  readonly device: PacketDevice;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  #identification = 0;
  #onReuse: () => void = () => {};

  constructor(device: PacketDevice) {
    this.device = device;
    this.bytes = device.outgoing.bytes;
    this.view = device.outgoing.view;
  }

  /** Called before the next packet begins: what waits in the buffer has to go. */
  beforeReuse(onReuse: () => void): void {
    this.#onReuse = onReuse;
  }

  /** Answers with where the transport header goes. The virtio header says: nothing left to do. */
  header(source: Uint8Array, destination: Uint8Array, protocol: number, length: number): number {
    this.#onReuse();
    const view = this.view;
    this.bytes.fill(0, 0, PACKET_AT + V6_HEADER_BYTES);
    if (source.length !== 4) {
      view.setUint8(PACKET_AT, 0x60);
      view.setUint16(PACKET_AT + 4, length);
      view.setUint8(PACKET_AT + 6, protocol);
      view.setUint8(PACKET_AT + 7, HOP_LIMIT);
      this.bytes.set(source, PACKET_AT + 8);
      this.bytes.set(destination, PACKET_AT + 24);
      return PACKET_AT + V6_HEADER_BYTES;
    }
    this.#identification = (this.#identification + 1) & 0xffff;
    view.setUint8(PACKET_AT, 0x45);
    view.setUint16(PACKET_AT + 2, V4_HEADER_BYTES + length);
    view.setUint16(PACKET_AT + 4, this.#identification);
    view.setUint8(PACKET_AT + 8, HOP_LIMIT);
    view.setUint8(PACKET_AT + 9, protocol);
    this.bytes.set(source, PACKET_AT + 12);
    this.bytes.set(destination, PACKET_AT + 16);
    this.sumHeader();
    return PACKET_AT + V4_HEADER_BYTES;
  }

  sumHeader(): void {
    const view = this.view;
    view.setUint16(PACKET_AT + 10, 0);
    view.setUint16(PACKET_AT + 10, 0xffff - fold(sumOf(view, PACKET_AT, PACKET_AT + V4_HEADER_BYTES)));
  }

  /** What follows `header` goes in fragments: answers with where the data of each goes. */
  beginFragments(at: number, protocol: number): number {
    if (at === PACKET_AT + V4_HEADER_BYTES) return at;
    const view = this.view;
    view.setUint8(PACKET_AT + 6, FRAGMENT);
    view.setUint8(at, protocol);
    view.setUint8(at + 1, 0);
    view.setUint32(at + 4, randomInt(2 ** 32)); // RFC 7739: not to be guessed
    return at + FRAGMENT_HEADER_BYTES;
  }

  /** `length` bytes of data at `dataAt`, which come `from` bytes behind the first of all. */
  sendFragment(dataAt: number, length: number, from: number, isLast: boolean): void {
    const view = this.view;
    if (dataAt === PACKET_AT + V4_HEADER_BYTES) {
      view.setUint16(PACKET_AT + 2, V4_HEADER_BYTES + length);
      view.setUint16(PACKET_AT + 6, (isLast ? 0 : MORE_FRAGMENTS_V4) | (from / 8));
      this.sumHeader();
    } else {
      view.setUint16(PACKET_AT + 4, FRAGMENT_HEADER_BYTES + length);
      view.setUint16(dataAt - FRAGMENT_HEADER_BYTES + 2, from | (isLast ? 0 : MORE_FRAGMENTS_V6));
    }
    this.send(dataAt + length);
  }

  /** What has been begun as one datagram is a run of `count`, `length` bytes from the UDP header on, for the kernel to cut. */
  makeRun(at: number, length: number, size: number, count: number): void {
    const view = this.view;
    leaveCutting(view, GSO_UDP, at + UDP_HEADER_BYTES, size);
    view.setUint16(at + 4, length);
    if (at === PACKET_AT + V6_HEADER_BYTES) return view.setUint16(PACKET_AT + 4, length);
    view.setUint16(PACKET_AT + 2, V4_HEADER_BYTES + length);
    this.sumHeader();
    this.#identification = (this.#identification + count - 1) & 0xffff; // each has one
  }

  /** The sum of the pseudo-header for the packet in the buffer. */
  #pseudo(at: number, protocol: number, length: number): number {
    const four = at === PACKET_AT + V4_HEADER_BYTES;
    if (four && protocol === ICMP) return 0; // it has none
    return pseudoSum(this.view, PACKET_AT + (four ? 12 : 8), four ? 4 : 16, protocol, length);
  }

  /** The kernel finishes the checksum when it is needed; without a virtio header it is computed here. */
  leaveChecksum(at: number, offset: number, protocol: number, length: number): void {
    if (!this.device.hasHeader) return this.sum(at, offset, protocol, length);
    const view = this.view;
    leaveChecksum(view, at, offset);
    view.setUint16(at + offset, fold(this.#pseudo(at, protocol, length)));
  }

  sum(at: number, offset: number, protocol: number, length: number): void {
    const sum = 0xffff - fold(sumOf(this.view, at, at + length, this.#pseudo(at, protocol, length)));
    this.view.setUint16(at + offset, sum === 0 && protocol === UDP ? 0xffff : sum); // 0 would mean none
  }

  finish(at: number, offset: number, protocol: number, length: number): void {
    this.sum(at, offset, protocol, length);
    this.send(at + length);
  }

  send(end: number): void {
    this.device.write(this.device.outgoing, end - PACKET_AT);
  }
}
