/** Datagrams in a stream, as sing-box and its kin have it: versions 1 and 2 ("UoT"). All integers big endian. */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Datagram, Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { bytesOfIp, ipFromBytes, toDestination } from "#net/address/ip.ts";
import {
  decodeName,
  decodeSocksAddress,
  encodeSocksAddress,
  MAX_SOCKS_ADDRESS,
} from "#net/address/socks-address.ts";
import { byteAt } from "#lib/at.ts";

export type Version = 1 | 2;

/** The names that a stream protocol is asked for instead of a real target. The port means nothing. */
const MAGIC_NAMES = { 1: "sp.udp-over-tcp.arpa", 2: "sp.v2.udp-over-tcp.arpa" } as const;

export function magicDestination(version: Version): Destination {
  return { host: MAGIC_NAMES[version], ip: null, port: 0 };
}

/** Null: an ordinary destination. */
export function versionOf({ host }: Destination): Version | null {
  if (host === MAGIC_NAMES[2]) return 2;
  return host === MAGIC_NAMES[1] ? 1 : null;
}

export interface Request {
  /** One peer for the whole stream; packets carry no address then. */
  readonly connect: boolean;
  /** The peer, or in packet mode the first destination. */
  readonly destination: Destination;
}

// Request (version 2, once): CONNECT(1) ADDRESS in SOCKS form.
export function encodeRequest({ connect, destination }: Request): Buffer {
  return Buffer.concat([Buffer.from([connect ? 1 : 0]), encodeSocksAddress(destination)]);
}

/** Takes the request; null: more bytes are needed. Throws `ProtocolError`. */
export function takeRequest(arrived: ByteQueue): Request | null {
  const head = arrived.peekUpTo(1 + MAX_SOCKS_ADDRESS);
  const address = decodeSocksAddress(head, 1);
  if (address === null) return null;
  const mode = byteAt(head, 0);
  if (mode > 1) throw new ProtocolError(`a UDP-over-TCP mode of ${mode}, expected 0 or 1`);
  arrived.skip(address.next);
  return { connect: mode === 1, destination: address.destination };
}

const TYPE_V4 = 0;
const TYPE_V6 = 1;
const TYPE_NAME = 2;
const MAX_PAYLOAD = 0xffff;

/** The address before a packet: none in connect mode, else the name if there is one, or the address (replies). */
export type Addressing = "none" | "host" | "ip";

// Packet: [TYPE(1): 0 IPv4, 1 IPv6, 2 name; ADDR; PORT(2)] LENGTH(2) DATA.
export function encodePacket({ payload, destination }: Datagram, addressing: Addressing): Buffer {
  if (payload.length > MAX_PAYLOAD) throw new DialError("failed", "a datagram of more than 65535 bytes");
  const address = addressing === "none" ? Buffer.alloc(0) : encodeAddress(destination, addressing);
  const out = Buffer.allocUnsafe(address.length + 2 + payload.length);
  address.copy(out);
  out.writeUInt16BE(payload.length, address.length);
  out.set(payload, address.length + 2);
  return out;
}

function encodeAddress({ host, ip, port }: Destination, prefer: "host" | "ip"): Buffer {
  const portBytes = Buffer.from([port >> 8, port & 0xff]);
  if (ip !== null && (host === null || prefer === "ip")) {
    const address = bytesOfIp(ip);
    return Buffer.concat([Buffer.from([address.length === 4 ? TYPE_V4 : TYPE_V6]), address, portBytes]);
  }
  const name = Buffer.from(host ?? "");
  if (name.length === 0 || name.length > 255)
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  return Buffer.concat([Buffer.from([TYPE_NAME, name.length]), name, portBytes]);
}

/** Takes a packet; `fixed` is the peer in connect mode. Null: more bytes are needed. Throws `ProtocolError`. */
export function takePacket(arrived: ByteQueue, fixed: Destination | null): Datagram | null {
  const addressBytes = fixed === null ? addressSize(arrived) : 0;
  if (addressBytes === null) return null;
  const head = arrived.peek(addressBytes + 2);
  if (head === null) return null;
  const end = head.length + head.readUInt16BE(addressBytes);
  const packet = arrived.take(end);
  if (packet === null) return null;
  const destination = fixed ?? decodeAddress(packet.subarray(0, addressBytes));
  return { payload: packet.subarray(addressBytes + 2), destination };
}

/** The address of the packet that comes next, which stays; null: more bytes are needed. */
export function peekAddress(arrived: ByteQueue): Destination | null {
  const size = addressSize(arrived);
  const address = size === null ? null : arrived.peek(size);
  return address === null ? null : decodeAddress(address);
}

function addressSize(arrived: ByteQueue): number | null {
  const head = arrived.peek(2);
  if (head === null) return null;
  const type = byteAt(head, 0);
  const length = byteAt(head, 1);
  if (type === TYPE_V4) return 7;
  if (type === TYPE_V6) return 19;
  if (type !== TYPE_NAME) throw new ProtocolError(`a packet's address type is ${type}, expected 0, 1 or 2`);
  if (length === 0) throw new ProtocolError("a packet's address with an empty name");
  return 4 + length;
}

function decodeAddress(bytes: Buffer): Destination {
  const port = bytes.readUInt16BE(bytes.length - 2);
  if (bytes[0] === TYPE_NAME) return toDestination(decodeName(bytes.subarray(2, -2)), port);
  return { host: null, ip: ipFromBytes(bytes.subarray(1, -2)), port };
}
