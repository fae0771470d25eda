/** Packets that are made here: UDP replies, resets, ICMP errors (RFC 768, 792, 4443, 9293 §3.10.7.1). */
import {
  GSO_UDP,
  MOST_PACKET_BYTES,
  NEEDS_CHECKSUM,
  PACKET_AT,
  type PacketDevice,
  VNET_BYTES,
} from "#platform/tun.ts";
import { fold, pseudoSum, sumOf } from "./checksum.ts";
import { ICMP, ICMP6, TCP, TCP_HEADER_BYTES, UDP, UDP_HEADER_BYTES } from "./packet.ts";
import { type Packet, V4_HEADER_BYTES, V6_HEADER_BYTES } from "./packet.ts";

const HOP_LIMIT = 64;
/** Every kernel that cuts takes so many. */
const MOST_SEGMENTS = 64;
const MORE_FRAGMENTS = 0x2000;
/** An ICMP error is not longer than this (RFC 1812 §4.3.2.3, RFC 4443 §2.4). */
const MOST_ERROR_BYTES = { 4: 576, 6: 1280 } as const;
const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

const FIN = 0x01;
const SYN = 0x02;
const RST = 0x04;
const ACK = 0x10;

/** What cannot be reached: ICMP type and code of both families. */
export const UNREACHABLE = {
  port: { 4: [3, 3], 6: [1, 4] },
  host: { 4: [3, 1], 6: [1, 3] },
} as const;

/** Datagrams of one size in the buffer of the device, behind one header. */
interface Run {
  readonly source: Uint8Array;
  readonly sourcePort: number;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
  /** Where the UDP header is. */
  readonly at: number;
  readonly size: number;
  end: number;
  count: number;
}

export class PacketWriter {
  readonly #device: PacketDevice;
  readonly #mtu: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** A whole datagram, while it is cut into fragments. */
  #whole: Uint8Array | null = null;
  #identification = 0;
  /** What waits for the end of the turn, or for what cannot join it. */
  #run: Run | null = null;
  #turnEnds = false;
  readonly #onTurnEnd = (): void => {
    this.#turnEnds = false;
    this.#flush();
  };

  constructor(device: PacketDevice, mtu: number) {
    this.#device = device;
    this.#mtu = mtu;
    this.#bytes = device.outgoing.bytes;
    this.#view = device.outgoing.view;
  }

  /**
   * A datagram from `source` to `destination`, both of one family, which nobody changes any more: the same objects are the
   * same addresses. Longer than the MTU it is cut into fragments in IPv4. It goes at the end of the turn at the latest:
   * the kernel's way of a packet costs far more than its bytes, so datagrams of one flow and size go as one, which the
   * kernel cuts at the other end of that way. False: too long, and nothing was sent.
   */
  udp(
    source: Uint8Array,
    sourcePort: number,
    destination: Uint8Array,
    destinationPort: number,
    payload: Uint8Array,
  ): boolean {
    const size = payload.length;
    const run = this.#run;
    if (
      run !== null &&
      run.source === source &&
      run.sourcePort === sourcePort &&
      run.destination === destination &&
      run.destinationPort === destinationPort &&
      this.#join(run, payload)
    )
      return true;
    const length = UDP_HEADER_BYTES + size;
    const headerBytes = source.length === 4 ? V4_HEADER_BYTES : V6_HEADER_BYTES;
    const fits = headerBytes + length <= this.#mtu;
    if (headerBytes + length > MOST_PACKET_BYTES || (!fits && source.length !== 4)) return false;
    const at = this.#header(source, destination, UDP, length);
    const view = this.#view;
    view.setUint16(at, sourcePort);
    view.setUint16(at + 2, destinationPort);
    view.setUint16(at + 4, length);
    view.setUint16(at + 6, 0);
    this.#bytes.set(payload, at + UDP_HEADER_BYTES);
    if (!fits) this.#fragments(at, length);
    else {
      const end = at + length;
      this.#run = { source, sourcePort, destination, destinationPort, at, size, end, count: 1 };
      if (this.#device.cutsDatagrams && size > 0) this.#atTurnEnd();
      else this.#flush();
    }
    return true;
  }

  #atTurnEnd(): void {
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    setImmediate(this.#onTurnEnd);
  }

  /** False: it cannot. */
  #join(run: Run, payload: Uint8Array): boolean {
    const size = payload.length;
    const end = run.end + size;
    if (size === 0 || size > run.size || run.count === MOST_SEGMENTS || end - PACKET_AT > MOST_PACKET_BYTES)
      return false;
    this.#bytes.set(payload, run.end);
    run.end = end;
    run.count++;
    if (size < run.size) this.#flush(); // only the last one may be shorter
    return true;
  }

  #flush(): void {
    const run = this.#run;
    if (run === null) return;
    this.#run = null;
    const { at, end, size, count } = run;
    const length = end - at;
    if (count > 1) {
      const view = this.#view;
      view.setUint8(1, GSO_UDP);
      view.setUint16(2, at + UDP_HEADER_BYTES - VNET_BYTES, LITTLE_ENDIAN);
      view.setUint16(4, size, LITTLE_ENDIAN);
      view.setUint16(at + 4, length);
      if (at === PACKET_AT + V6_HEADER_BYTES) view.setUint16(PACKET_AT + 4, length);
      else {
        view.setUint16(PACKET_AT + 2, V4_HEADER_BYTES + length);
        this.#sumHeader();
        this.#identification = (this.#identification + count - 1) & 0xffff; // each has one
      }
    }
    this.#leaveChecksum(at, 6, UDP, length);
    this.#send(end);
  }

  /** Refuses the flow of a TCP segment that is no reset itself. */
  reset(packet: Packet, flags: number): void {
    const { view, transportAt, end } = packet;
    const at = this.#answerTo(packet, TCP, TCP_HEADER_BYTES);
    const out = this.#view;
    const acknowledged = (flags & ACK) !== 0;
    const dataAt = transportAt + ((packet.bytes[transportAt + 12] as number) >> 4) * 4;
    const taken = Math.max(0, end - dataAt) + ((flags & SYN) === 0 ? 0 : 1) + ((flags & FIN) === 0 ? 0 : 1);
    out.setUint16(at, packet.destinationPort);
    out.setUint16(at + 2, packet.sourcePort);
    out.setUint32(at + 4, acknowledged ? view.getUint32(transportAt + 8) : 0);
    out.setUint32(at + 8, acknowledged ? 0 : view.getUint32(transportAt + 4) + taken);
    out.setUint8(at + 12, (TCP_HEADER_BYTES / 4) << 4);
    out.setUint8(at + 13, acknowledged ? RST : RST | ACK);
    out.setUint32(at + 14, 0); // window, checksum
    out.setUint16(at + 18, 0);
    this.#finish(at, 16, TCP, TCP_HEADER_BYTES);
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
    const at = this.#header(destination, client, protocol, 8 + quoted);
    const [type, code] = UNREACHABLE[what][family];
    this.#view.setUint8(at, type);
    this.#view.setUint8(at + 1, code);
    this.#view.setUint16(at + 2, 0);
    this.#view.setUint32(at + 4, 0);
    this.#bytes.set(about.subarray(0, quoted), at + 8);
    this.#finish(at, 2, protocol, 8 + quoted);
  }

  /** An ICMP error about a datagram from `client` of which nothing is left but who sent it where: its headers are made anew. */
  portUnreachable(destination: Uint8Array, port: number, client: Uint8Array, clientPort: number): void {
    const at = this.#header(client, destination, UDP, UDP_HEADER_BYTES);
    this.#view.setUint16(at, clientPort);
    this.#view.setUint16(at + 2, port);
    this.#view.setUint16(at + 4, UDP_HEADER_BYTES);
    this.#view.setUint16(at + 6, 0);
    const about = this.#bytes.slice(PACKET_AT, at + UDP_HEADER_BYTES);
    this.unreachableFrom(destination, client, about, "port");
  }

  /** An ICMP message with a zero checksum field, the checksum filled in. False: longer than the MTU, not sent. */
  icmp(source: Uint8Array, destination: Uint8Array, message: Uint8Array): boolean {
    const family = source.length === 4 ? 4 : 6;
    const headerBytes = family === 4 ? V4_HEADER_BYTES : V6_HEADER_BYTES;
    if (headerBytes + message.length > this.#mtu) return false;
    const protocol = family === 4 ? ICMP : ICMP6;
    const at = this.#header(source, destination, protocol, message.length);
    this.#bytes.set(message, at);
    this.#finish(at, 2, protocol, message.length);
    return true;
  }

  #answerTo(
    { bytes, sourceAt, destinationAt, addressBytes }: Packet,
    protocol: number,
    length: number,
  ): number {
    const from = bytes.subarray(destinationAt, destinationAt + addressBytes);
    const to = bytes.subarray(sourceAt, sourceAt + addressBytes);
    return this.#header(from, to, protocol, length);
  }

  /** Answers with where the transport header goes. The virtio header says: nothing left to do. */
  #header(source: Uint8Array, destination: Uint8Array, protocol: number, length: number): number {
    this.#flush(); // what waits lies in the same memory
    const view = this.#view;
    this.#bytes.fill(0, 0, PACKET_AT + V6_HEADER_BYTES);
    if (source.length !== 4) {
      view.setUint8(PACKET_AT, 0x60);
      view.setUint16(PACKET_AT + 4, length);
      view.setUint8(PACKET_AT + 6, protocol);
      view.setUint8(PACKET_AT + 7, HOP_LIMIT);
      this.#bytes.set(source, PACKET_AT + 8);
      this.#bytes.set(destination, PACKET_AT + 24);
      return PACKET_AT + V6_HEADER_BYTES;
    }
    this.#identification = (this.#identification + 1) & 0xffff;
    view.setUint8(PACKET_AT, 0x45);
    view.setUint16(PACKET_AT + 2, V4_HEADER_BYTES + length);
    view.setUint16(PACKET_AT + 4, this.#identification);
    view.setUint8(PACKET_AT + 8, HOP_LIMIT);
    view.setUint8(PACKET_AT + 9, protocol);
    this.#bytes.set(source, PACKET_AT + 12);
    this.#bytes.set(destination, PACKET_AT + 16);
    this.#sumHeader();
    return PACKET_AT + V4_HEADER_BYTES;
  }

  #sumHeader(): void {
    const view = this.#view;
    view.setUint16(PACKET_AT + 10, 0);
    view.setUint16(PACKET_AT + 10, 0xffff - fold(sumOf(view, PACKET_AT, PACKET_AT + V4_HEADER_BYTES)));
  }

  /** The sum of the pseudo-header of what stands in the buffer. */
  #pseudo(at: number, protocol: number, length: number): number {
    const four = at === PACKET_AT + V4_HEADER_BYTES;
    if (four && protocol === ICMP) return 0; // it has none
    return pseudoSum(this.#view, PACKET_AT + (four ? 12 : 8), four ? 4 : 16, protocol, length);
  }

  /** The kernel finishes the checksum, if anybody ever needs it; without a header it is done here. */
  #leaveChecksum(at: number, offset: number, protocol: number, length: number): void {
    if (!this.#device.hasHeader) return this.#sum(at, offset, protocol, length);
    const view = this.#view;
    view.setUint8(0, NEEDS_CHECKSUM);
    view.setUint16(6, at - VNET_BYTES, LITTLE_ENDIAN);
    view.setUint16(8, offset, LITTLE_ENDIAN);
    view.setUint16(at + offset, fold(this.#pseudo(at, protocol, length)));
  }

  #sum(at: number, offset: number, protocol: number, length: number): void {
    const sum = 0xffff - fold(sumOf(this.#view, at, at + length, this.#pseudo(at, protocol, length)));
    this.#view.setUint16(at + offset, sum === 0 && protocol === UDP ? 0xffff : sum); // 0 would mean none
  }

  #finish(at: number, offset: number, protocol: number, length: number): void {
    this.#sum(at, offset, protocol, length);
    this.#send(at + length);
  }

  #send(end: number): void {
    this.#device.write(this.#device.outgoing, end - PACKET_AT);
  }

  #fragments(at: number, length: number): void {
    this.#sum(at, 6, UDP, length);
    this.#whole ??= new Uint8Array(MOST_PACKET_BYTES);
    this.#whole.set(this.#bytes.subarray(at, at + length));
    const most = Math.max(8, Math.floor((this.#mtu - V4_HEADER_BYTES) / 8) * 8);
    for (let from = 0; from < length; from += most) {
      const piece = Math.min(most, length - from);
      this.#bytes.set(this.#whole.subarray(from, from + piece), at);
      this.#view.setUint16(PACKET_AT + 2, V4_HEADER_BYTES + piece);
      this.#view.setUint16(PACKET_AT + 6, (from + piece < length ? MORE_FRAGMENTS : 0) | (from / 8));
      this.#sumHeader();
      this.#send(at + piece);
    }
  }
}
