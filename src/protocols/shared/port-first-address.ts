/** Addresses as VMess and what came after it have them: PORT(2, big endian) ATYP(1) ADDR(4 | 1+n | 16). */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, toDestination } from "#net/address/ip.ts";
import { decodeName } from "#net/address/socks-address.ts";
import { byteAt } from "#lib/at.ts";

const ATYP_V4 = 1; // not the numbers of SOCKS
const ATYP_NAME = 2;
const ATYP_V6 = 3;

/** PORT ATYP ADDR. Throws `DialError` for a name that the field cannot hold. */
export function encodeAddress({ host, ip, port }: Destination, prefer: "host" | "ip" = "host"): Buffer {
  if (ip !== null && (host === null || prefer === "ip")) {
    const bytes = bytesOfIp(ip);
    return addressOf(port, bytes.length === 4 ? ATYP_V4 : ATYP_V6, bytes);
  }
  const name = Buffer.from(host ?? "");
  if (name.length < 1 || name.length > 255)
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  return addressOf(port, ATYP_NAME, Buffer.concat([Buffer.from([name.length]), name]));
}

function addressOf(port: number, type: number, body: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(3 + body.length);
  out.writeUInt16BE(port, 0);
  out[2] = type;
  out.set(body, 3);
  return out;
}

/** Null: `bytes` ends before the address does. Throws `ProtocolError`. */
export function decodeAddress(bytes: Buffer, at: number): { destination: Destination; next: number } | null {
  if (bytes.length < at + 4) return null;
  const port = bytes.readUInt16BE(at);
  const type = bytes[at + 2];
  if (type === ATYP_NAME) {
    const end = at + 4 + byteAt(bytes, at + 3);
    if (end === at + 4) throw new ProtocolError("an address with an empty name");
    if (bytes.length < end) return null;
    return { destination: toDestination(decodeName(bytes.subarray(at + 4, end)), port), next: end };
  }
  if (type !== ATYP_V4 && type !== ATYP_V6)
    throw new ProtocolError(`address type ${type}, expected 1, 2 or 3`);
  const end = at + 3 + (type === ATYP_V4 ? 4 : 16);
  if (bytes.length < end) return null;
  return { destination: { host: null, ip: ipFromBytes(bytes.subarray(at + 3, end)), port }, next: end };
}
