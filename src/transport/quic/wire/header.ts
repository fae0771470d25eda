/**
 * The parts of a packet's header that are not protected (RFC 9000 §17).
 * Long: 1 1 TYPE(2) xxxx VERSION(4) DCID(1+n) SCID(1+n); Initial: TOKEN(vi+n); all but Retry: LENGTH(vi) NUMBER(1-4) …
 * Short: 0 1 S R R K PP DCID(of the length that we give out) NUMBER(1-4) …
 */
import type { WireReader } from "./reader.ts";
import type { WireWriter } from "./writer.ts";
import { byteAt } from "#lib/at.ts";
import { PROTOCOL_VIOLATION, QuicFault } from "#transport/quic/fault.ts";

export const VERSION_1 = 1;
/** Every connection id that we give out has it. */
export const CID_BYTES = 8;
export const MAX_CID_BYTES = 20;
/** A client's first datagram, and a server's that asks for an answer, has at least so many (RFC 9000 §14.1). */
export const MIN_INITIAL_BYTES = 1200;

export const INITIAL = 0;
export const ZERO_RTT = 1;
export const HANDSHAKE = 2;
export const RETRY = 3;
export const ONE_RTT = 4;
export const VERSION_NEGOTIATION = 5;
export type PacketType = 0 | 1 | 2 | 3 | 4 | 5;

const LONG = 0x80;
const FIXED = 0x40;
/** In packets with a short header, whose destination is an id of ours. */
export const SHORT_NUMBER_AT = 1 + CID_BYTES;
const TYPES = [INITIAL, ZERO_RTT, HANDSHAKE, RETRY] as const;

export interface PacketHeader {
  readonly type: PacketType;
  readonly version: number;
  /** Views of the packet. */
  readonly destination: Uint8Array;
  readonly source: Uint8Array;
  readonly token: Uint8Array;
  /** Where the packet begins and ends in its datagram, and where its number begins; of Retry and others: the rest. */
  readonly start: number;
  readonly numberAt: number;
  readonly end: number;
}

const NOTHING = new Uint8Array(0);

/** Does a packet that begins with this byte have a short header? */
export function isShortHeader(first: number): boolean {
  return (first & LONG) === 0;
}

/** Every packet of version 1 has it. */
export function hasFixedBit(first: number): boolean {
  return (first & FIXED) !== 0;
}

/** Does the datagram begin with an Initial that has a token, as its first bytes tell? */
export function hasToken(datagram: Uint8Array): boolean {
  const first = datagram[0] ?? 0;
  if (isShortHeader(first) || ((first >> 4) & 3) !== INITIAL) return false;
  const sourceAt = 6 + (datagram[5] ?? 0);
  return (datagram[sourceAt + 1 + (datagram[sourceAt] ?? 0)] ?? 0) !== 0;
}

/** The next packet of a datagram; the reader stands behind it then. Throws `QuicFault` where it is none. */
export function readHeader(reader: WireReader): PacketHeader {
  const start = reader.at;
  const first = reader.byte();
  if ((first & LONG) === 0) return readShort(reader, start, first);
  const version = reader.uint32();
  const destination = readId(reader, version);
  const source = readId(reader, version);
  const common = { version, destination, source, token: NOTHING, start };
  if (version === 0) return rest(reader, { ...common, type: VERSION_NEGOTIATION });
  const type = TYPES[(first >> 4) & 3] ?? INITIAL;
  // Of another version nothing else is known.
  if (version !== VERSION_1) return rest(reader, { ...common, type });
  if (!hasFixedBit(first)) throw new QuicFault(PROTOCOL_VIOLATION, "a packet without the fixed bit");
  if (type === RETRY) return rest(reader, { ...common, type });
  const token = type === INITIAL ? reader.take(reader.varint()) : NOTHING;
  const length = reader.varint();
  const numberAt = reader.skip(length);
  return { ...common, type, token, numberAt, end: reader.at };
}

function readShort(reader: WireReader, start: number, first: number): PacketHeader {
  if (!hasFixedBit(first)) throw new QuicFault(PROTOCOL_VIOLATION, "a packet without the fixed bit");
  const destination = reader.take(CID_BYTES);
  const header = { type: ONE_RTT, version: VERSION_1, destination, source: NOTHING, token: NOTHING } as const;
  return rest(reader, { ...header, start });
}

function rest(reader: WireReader, header: Omit<PacketHeader, "numberAt" | "end">): PacketHeader {
  const numberAt = reader.at;
  reader.at = reader.end;
  return { ...header, numberAt, end: reader.end };
}

/** Versions that are not known may have longer ids (RFC 8999 §5.1). */
function readId(reader: WireReader, version: number): Uint8Array {
  const size = reader.byte();
  if (size > MAX_CID_BYTES && version === VERSION_1)
    throw new QuicFault(PROTOCOL_VIOLATION, `a connection id of ${size} bytes`);
  return reader.take(size);
}

export interface LongHeader {
  readonly type: typeof INITIAL | typeof ZERO_RTT | typeof HANDSHAKE;
  readonly destination: Uint8Array;
  readonly source: Uint8Array;
  readonly token: Uint8Array;
  /** 1 to 4. */
  readonly numberBytes: number;
}

/** Answers where the two bytes of the length stand, which `finishLong` fills. */
export function beginLong(out: WireWriter, header: LongHeader): number {
  const { type, destination, source, token, numberBytes } = header;
  out.byte(LONG | FIXED | (type << 4) | (numberBytes - 1));
  out.uint32(VERSION_1);
  out.byte(destination.length);
  out.put(destination);
  out.byte(source.length);
  out.put(source);
  if (type === INITIAL) {
    out.varint(token.length);
    out.put(token);
  }
  const lengthAt = out.at;
  out.varint2(0);
  return lengthAt;
}

/** `bytes`: of packet number, payload and tag together. */
export function finishLong(out: WireWriter, lengthAt: number, bytes: number): void {
  out.bytes[lengthAt] = 0x40 | (bytes >> 8);
  out.bytes[lengthAt + 1] = bytes;
}

export function writeShort(out: WireWriter, to: Uint8Array, keyPhase: number, numberBytes: number): void {
  out.byte(FIXED | (keyPhase << 2) | (numberBytes - 1));
  out.put(to);
}

/** The versions that a Version Negotiation packet lists (RFC 9000 §17.2.1); `reader` stands behind its ids. */
export function readVersions(bytes: Uint8Array): number[] {
  const versions: number[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4)
    versions.push(
      ((byteAt(bytes, at) << 24) |
        (byteAt(bytes, at + 1) << 16) |
        (byteAt(bytes, at + 2) << 8) |
        byteAt(bytes, at + 3)) >>>
        0,
    );
  return versions;
}

/**
 * Lists version 1 and one that does not exist, so that peers learn to pass over it: one other than `refused`, which the client
 * asked for, or it would have to ignore the packet (RFC 9000 §6.2, §15). The ids are swapped.
 */
export function writeVersions(
  out: WireWriter,
  ids: { readonly source: Uint8Array; readonly destination: Uint8Array },
  refused: number,
): void {
  out.byte(LONG | FIXED);
  out.uint32(0);
  for (const id of [ids.source, ids.destination]) {
    out.byte(id.length);
    out.put(id);
  }
  out.uint32(VERSION_1);
  out.uint32(((~refused & 0xf0f0_f0f0) | 0x0a0a_0a0a) >>> 0);
}
