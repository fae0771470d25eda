/** The messages of TUIC version 5 inside QUIC (its protocol document, "Command"). Numbers are big endian. */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import { byteAt } from "#lib/at.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { bytesOfIp, ipFromBytes, toDestination } from "#net/address/ip.ts";
import { decodeName } from "#net/address/socks-address.ts";

const VERSION = 5;
export const COMMAND = { authenticate: 0, connect: 1, packet: 2, dissociate: 3, heartbeat: 4 } as const;

const NAME = 0;
const IPV4 = 1;
const IPV6 = 2;
const NO_ADDRESS = 0xff;

export const UUID_BYTES = 16;
export const MOST_ASSOCIATIONS = 0x10000;
export const MOST_NAME_BYTES = 255;
/** A packet with the longest name and payload. */
export const MOST_PACKET_BYTES = 0xffff + 300;
export const TOKEN_BYTES = 32;
/** In front of the address of a Packet. */
const PACKET_HEAD_BYTES = 10;

/** The codes by which a server ends a connection. */
export const END = {
  protocol: 0xfffffff0,
  refused: 0xfffffff1,
  late: 0xfffffff2,
  command: 0xfffffff3,
} as const;
export const END_REASONS: ReadonlyMap<number, string> = new Map([
  [END.protocol, "it does not take what was said for TUIC"],
  [END.refused, "it does not take uuid and password"],
  [END.late, "it has waited too long for uuid and password"],
  [END.command, "it does not know a command"],
]);

/** VER(1) TYPE(1) UUID(16) TOKEN(32) */
export function encodeAuthenticate(uuid: Uint8Array, token: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(VERSION, COMMAND.authenticate), uuid, token]);
}

/** VER(1) TYPE(1) ADDRESS. Throws `DialError` for a name that does not fit. */
export function encodeConnect(destination: Destination): Buffer {
  return Buffer.concat([Buffer.of(VERSION, COMMAND.connect), encodeAddress(destination)]);
}

/** VER(1) TYPE(1) ASSOCIATION(2) */
export function encodeDissociate(association: number): Buffer {
  return Buffer.of(VERSION, COMMAND.dissociate, association >>> 8, association & 0xff);
}

/** VER(1) TYPE(1) */
export const HEARTBEAT: Uint8Array = Uint8Array.of(VERSION, COMMAND.heartbeat);

export interface Packet {
  /** What tells the flows of a connection apart. */
  readonly association: number;
  readonly packet: number;
  readonly fragments: number;
  readonly fragment: number;
  /** Null on fragments behind the first. */
  readonly address: Destination | null;
  readonly data: Uint8Array;
}

/** Bytes of a Packet whose data is empty. Throws `DialError` for a name that does not fit. */
export function packetHeadBytes(address: Destination): number {
  return PACKET_HEAD_BYTES + encodeAddress(address).length;
}

/** VER(1) TYPE(1) ASSOCIATION(2) PACKET(2) FRAGMENTS(1) FRAGMENT(1) SIZE(2) ADDRESS DATA. Throws as `encodeAddress` does. */
export function encodePacket({ association, packet, fragments, fragment, address, data }: Packet): Buffer {
  const target = address === null ? Buffer.of(NO_ADDRESS) : encodeAddress(address);
  const out = Buffer.allocUnsafe(PACKET_HEAD_BYTES + target.length + data.length);
  out[0] = VERSION;
  out[1] = COMMAND.packet;
  out.writeUInt16BE(association, 2);
  out.writeUInt16BE(packet, 4);
  out[6] = fragments;
  out[7] = fragment;
  out.writeUInt16BE(data.length, 8);
  out.set(target, PACKET_HEAD_BYTES);
  out.set(data, PACKET_HEAD_BYTES + target.length);
  return out;
}

/** The data is a view. Null: another command. Throws `ProtocolError`. */
export function decodePacket(bytes: Uint8Array): Packet | null {
  if (commandOf(bytes) !== COMMAND.packet) return null;
  if (bytes.length < PACKET_HEAD_BYTES + 1) throw bad("a packet that is cut short");
  const u16 = (at: number) => byteAt(bytes, at) * 256 + byteAt(bytes, at + 1);
  const [fragments, fragment] = [byteAt(bytes, 6), byteAt(bytes, 7)];
  if (fragments === 0 || fragment >= fragments) throw bad("a fragment behind the last");
  const { address, next } = decodeAddress(bytes, PACKET_HEAD_BYTES);
  if (bytes.length !== next + u16(8)) throw bad("a packet of another size than it says");
  const data = bytes.subarray(next);
  return { association: u16(2), packet: u16(4), fragments, fragment, address, data };
}

/** The destination of a stream; null: it has not come. Throws `ProtocolError`. */
export function takeConnect(arrived: ByteQueue): Destination | null {
  const head = arrived.peek(4);
  if (head === null) return null;
  if (head[0] !== VERSION || head[1] !== COMMAND.connect) throw bad("a stream that asks for no connection");
  const whole = arrived.take(2 + addressBytes(byteAt(head, 2), byteAt(head, 3)));
  return whole === null ? null : decodeAddress(whole, 2).address;
}

/** The type of a command, which is whole. Throws `ProtocolError`. */
export function commandOf(bytes: Uint8Array): number {
  if (bytes.length < 2 || bytes[0] !== VERSION) throw bad("no command of version 5");
  return byteAt(bytes, 1);
}

/** Throws `ProtocolError`. */
export function decodeAuthenticate(bytes: Uint8Array): { uuid: Uint8Array; token: Uint8Array } {
  if (bytes.length !== 2 + UUID_BYTES + TOKEN_BYTES) throw bad("an authentication of another length");
  return { uuid: bytes.subarray(2, 2 + UUID_BYTES), token: bytes.subarray(2 + UUID_BYTES) };
}

/** The association. Throws `ProtocolError`. */
export function decodeDissociate(bytes: Uint8Array): number {
  if (bytes.length !== 4) throw bad("an end of an association of another length");
  return byteAt(bytes, 2) * 256 + byteAt(bytes, 3);
}

/** TYPE(1), then LENGTH(1) NAME, or 4 or 16 bytes; then PORT(2). Throws `DialError` for a name that does not fit. */
function encodeAddress({ host, ip, port }: Destination): Buffer {
  const name = Buffer.from(host ?? "");
  const address = host === null && ip !== null ? bytesOfIp(ip) : null;
  if (address === null && (name.length === 0 || name.length > MOST_NAME_BYTES))
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  const head =
    address === null ? Buffer.of(NAME, name.length) : Buffer.of(address.length === 4 ? IPV4 : IPV6);
  return Buffer.concat([head, address ?? name, Buffer.of(port >>> 8, port & 0xff)]);
}

/** Of an address with its port. `length`: the byte behind the type. Throws `ProtocolError` for a type that has no address. */
function addressBytes(type: number, length: number): number {
  const bytes = type === NAME ? 1 + length : type === IPV4 ? 4 : type === IPV6 ? 16 : -1;
  if (bytes < 0) throw bad(`an address of type ${type}`);
  if (type === NAME && length === 0) throw bad("an address with an empty name");
  return 1 + bytes + 2;
}

function decodeAddress(bytes: Uint8Array, at: number): { address: Destination | null; next: number } {
  const type = byteAt(bytes, at);
  if (type === NO_ADDRESS) return { address: null, next: at + 1 };
  const next = at + addressBytes(type, bytes[at + 1] ?? 0);
  if (bytes.length < next) throw bad("an address that is cut short");
  const port = byteAt(bytes, next - 2) * 256 + byteAt(bytes, next - 1);
  const field = bytes.subarray(type === NAME ? at + 2 : at + 1, next - 2);
  const address =
    type === NAME ? toDestination(decodeName(field), port) : { host: null, ip: ipFromBytes(field), port };
  return { address, next };
}

function bad(why: string): ProtocolError {
  return new ProtocolError(`tuic: ${why}`);
}
