/** IP packets for tests, made and checked by other code than what is tested; a device that is memory. */
import type { PacketDevice } from "#platform/tun.ts";

export interface Wire {
  readonly source: string;
  readonly destination: string;
  readonly protocol: number;
  readonly transport: Buffer;
}

const V4 = 4;

export function addressBytes(text: string): Buffer {
  if (!text.includes(":")) return Buffer.from(text.split(".").map(Number));
  const [head = "", tail] = text.split("::");
  const groups = (part: string) =>
    (part === "" ? [] : part.split(":")).map((group) => Number.parseInt(group, 16));
  const left = groups(head);
  const right = groups(tail ?? "");
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

export function addressText(bytes: Uint8Array): string {
  if (bytes.length === V4) return bytes.join(".");
  const buffer = Buffer.from(bytes);
  return Array.from({ length: 8 }, (_, at) => buffer.readUInt16BE(at * 2).toString(16)).join(":");
}

/** The Internet checksum's sum, plainly. */
export function onesSum(...parts: readonly Uint8Array[]): number {
  let sum = 0;
  for (const part of parts)
    for (let at = 0; at < part.length; at += 2) sum += (part[at] as number) * 256 + (part[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum % 65_536) + Math.floor(sum / 65_536);
  return sum;
}

export function pseudoHeader(
  source: Uint8Array,
  destination: Uint8Array,
  protocol: number,
  length: number,
): Buffer {
  const tail = Buffer.alloc(8);
  tail.writeUInt32BE(length, 0);
  tail.writeUInt32BE(protocol, 4);
  return Buffer.concat([source, destination, tail]);
}

/** With correct checksums; ICMP of IPv4 has no pseudo-header. */
export function ipPacket(
  { source, destination, protocol, transport }: Wire,
  extensions = Buffer.alloc(0),
): Buffer {
  const [from, to] = [addressBytes(source), addressBytes(destination)];
  const body = Buffer.from(transport);
  const checksumAt = ({ 6: 16, 17: 6, 1: 2, 58: 2 } as Record<number, number>)[protocol];
  if (checksumAt !== undefined && body.length >= checksumAt + 2) {
    body.writeUInt16BE(0, checksumAt);
    const pseudo = protocol === 1 ? Buffer.alloc(0) : pseudoHeader(from, to, protocol, body.length);
    body.writeUInt16BE(0xffff - onesSum(pseudo, body) || (protocol === 17 ? 0xffff : 0), checksumAt);
  }
  if (from.length === V4) {
    const header = Buffer.alloc(20);
    header[0] = 0x45;
    header.writeUInt16BE(20 + body.length, 2);
    header[8] = 64;
    header[9] = protocol;
    header.set(from, 12);
    header.set(to, 16);
    header.writeUInt16BE(0xffff - onesSum(header), 10);
    return Buffer.concat([header, body]);
  }
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(extensions.length + body.length, 4);
  header[6] = extensions.length > 0 ? 0 : protocol; // a hop-by-hop header first
  header[7] = 64;
  header.set(from, 8);
  header.set(to, 24);
  return Buffer.concat([header, extensions, body]);
}

export interface Segment {
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly flags: number;
  readonly sequence?: number;
  readonly acknowledgment?: number;
  readonly payload?: Uint8Array;
}

export function tcpSegment(segment: Segment): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt16BE(segment.sourcePort, 0);
  header.writeUInt16BE(segment.destinationPort, 2);
  header.writeUInt32BE(segment.sequence ?? 0, 4);
  header.writeUInt32BE(segment.acknowledgment ?? 0, 8);
  header[12] = 0x50;
  header[13] = segment.flags;
  return Buffer.concat([header, segment.payload ?? Buffer.alloc(0)]);
}

export function udpDatagram(sourcePort: number, destinationPort: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt16BE(sourcePort, 0);
  header.writeUInt16BE(destinationPort, 2);
  header.writeUInt16BE(8 + payload.length, 4);
  return Buffer.concat([header, payload]);
}

export interface Read extends Wire {
  /** Are all its checksums right? */
  readonly intact: boolean;
  readonly moreFragments: boolean;
  readonly fragmentAt: number;
}

/** Of a packet without extension headers. */
export function readPacket(packet: Buffer): Read {
  const four = (packet[0] as number) >> 4 === V4;
  const headerBytes = four ? 20 : 40;
  const protocol = packet[four ? 9 : 6] as number;
  const [at, size] = four ? [12, 4] : [8, 16];
  const source = packet.subarray(at, at + size);
  const destination = packet.subarray(at + size, at + size * 2);
  const transport = packet.subarray(headerBytes);
  const offset = four ? packet.readUInt16BE(6) : 0;
  const whole = (offset & 0x3fff) === 0;
  const pseudo =
    protocol === 1 ? Buffer.alloc(0) : pseudoHeader(source, destination, protocol, transport.length);
  return {
    source: addressText(source),
    destination: addressText(destination),
    protocol,
    transport,
    intact:
      (!four || onesSum(packet.subarray(0, 20)) === 0xffff) &&
      (!whole || onesSum(pseudo, transport) === 0xffff),
    moreFragments: (offset & 0x2000) !== 0,
    fragmentAt: (offset & 0x1fff) * 8,
  };
}

export interface MemoryTun extends PacketDevice {
  /** What was written, virtio header and all. */
  readonly written: Buffer[];
  /** Puts a packet, or a virtio header and a packet, into `incoming`, and answers with the packet's length. */
  put(packet: Uint8Array, header?: Uint8Array): number;
}

const HEADER_BYTES = 10;

export function memoryTun(hasHeader = true, cutsDatagrams = false): MemoryTun {
  const buffer = () => {
    const bytes = new Uint8Array(HEADER_BYTES + 65_535);
    return { bytes, view: new DataView(bytes.buffer), pointer: 0n, packetPointer: 0n };
  };
  const [incoming, outgoing] = [buffer(), buffer()];
  const written: Buffer[] = [];
  return {
    hasHeader,
    cutsDatagrams,
    incoming,
    outgoing,
    written,
    write: ({ bytes }, length) => void written.push(Buffer.from(bytes.subarray(0, HEADER_BYTES + length))),
    put(packet, header = new Uint8Array(HEADER_BYTES)) {
      incoming.bytes.set(header);
      incoming.bytes.set(packet, HEADER_BYTES);
      return packet.length;
    },
  };
}
