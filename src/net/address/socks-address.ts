/**
 * SOCKS-style addresses, the one codec of all protocols that use them (SOCKS5, Shadowsocks, Trojan, Hysteria
 * …). Layout (RFC 1928 §5): ATYP(1) ADDR(4 | 1+n | 16) PORT(2, big endian); ATYP 1 IPv4, 3 name, 4 IPv6.
 */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Destination, Ip } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, toDestination, v4FromBytes } from "./ip.ts";
import { byteAt } from "#lib/at.ts";

const ATYP_V4 = 1;
const ATYP_NAME = 3;
const ATYP_V6 = 4;

/** The largest address: a name of 255 bytes. */
export const MAX_SOCKS_ADDRESS = 1 + 1 + 255 + 2;

export interface DecodedAddress {
  readonly destination: Destination;
  /** Offset of the first byte behind the address. */
  readonly next: number;
}

/**
 * The name where there is one, so that the far side resolves; `prefer: "ip"` is for the source of a reply, which
 * clients compare with addresses. Throws `DialError` for a name of more than 255 bytes.
 */
export function encodeSocksAddress(destination: Destination, prefer: "host" | "ip" = "host"): Buffer {
  const { host, ip, port } = destination;
  if (ip !== null && (host === null || prefer === "ip")) return encodeIp(ip, port);
  const name = Buffer.from(host ?? "");
  if (name.length === 0 || name.length > 255)
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  const out = Buffer.allocUnsafe(4 + name.length);
  out[0] = ATYP_NAME;
  out[1] = name.length;
  name.copy(out, 2);
  out.writeUInt16BE(port, 2 + name.length);
  return out;
}

function encodeIp(ip: Ip, port: number): Buffer {
  const address = bytesOfIp(ip);
  const out = Buffer.allocUnsafe(3 + address.length);
  out[0] = address.length === 4 ? ATYP_V4 : ATYP_V6;
  out.set(address, 1);
  out.writeUInt16BE(port, 1 + address.length);
  return out;
}

/**
 * Reads the address that starts at `at`. Null: `bytes` ends before the address does. An IPv4-mapped address comes out
 * as IPv4, a literal in a name field as an address. Throws `ProtocolError` for an unknown type and for a name that is
 * empty or has control characters or blanks.
 */
export function decodeSocksAddress(bytes: Uint8Array, at = 0): DecodedAddress | null {
  const type = bytes[at];
  if (type === undefined) return null;
  if (type === ATYP_V4) return decodeIp(bytes, at + 1, 4);
  if (type === ATYP_V6) return decodeIp(bytes, at + 1, 16);
  if (type !== ATYP_NAME) throw new ProtocolError(`address type ${type}, expected 1, 3 or 4`);
  const length = bytes[at + 1];
  if (length === undefined) return null;
  if (length === 0) throw new ProtocolError("an address with an empty name");
  const end = at + 2 + length;
  if (bytes.length < end + 2) return null;
  const port = portAt(bytes, end);
  return { destination: toDestination(decodeName(bytes.subarray(at + 2, end)), port), next: end + 2 };
}

function decodeIp(bytes: Uint8Array, start: number, size: 4 | 16): DecodedAddress | null {
  const end = start + size;
  if (bytes.length < end + 2) return null;
  const ip = size === 4 ? v4FromBytes(bytes, start) : ipFromBytes(bytes.subarray(start, end));
  return { destination: { host: null, ip, port: portAt(bytes, end) }, next: end + 2 };
}

/** A host name in a protocol field; UTF-8. Throws `ProtocolError` for control characters and blanks. */
export function decodeName(bytes: Uint8Array): string {
  for (const byte of bytes)
    if (byte <= 0x20 || byte === 0x7f) throw new ProtocolError("a name with control characters or blanks");
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function portAt(bytes: Uint8Array, at: number): number {
  return (byteAt(bytes, at) << 8) | byteAt(bytes, at + 1);
}
