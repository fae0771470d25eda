/** A STUN binding request and what its answer says (RFC 8489): the question with which WebRTC learns its own address. */
import { randomBytes } from "node:crypto";
import { byteAt } from "#lib/at.ts";
import type { Ip } from "#core/session.ts";
import { ipFromBytes } from "#net/address/ip.ts";

const HEADER_BYTES = 20;
const COOKIE = 0x2112_a442;
const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const MAPPED_ADDRESS = 0x0001;
const XOR_MAPPED_ADDRESS = 0x0020;
const ADDRESS_BYTES = new Map([
  [1, 4],
  [2, 16],
]);

// Header (§5): TYPE(2) LENGTH(2) COOKIE(4) TRANSACTION(12)
export function encodeBinding(): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt16BE(BINDING_REQUEST, 0);
  bytes.writeUInt32BE(COOKIE, 4);
  randomBytes(12).copy(bytes, 8);
  return bytes;
}

/** The address that the server saw; null: no answer to `request`, or none that can be read. */
export function mappedAddress(request: Uint8Array, answer: Uint8Array): Ip | null {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength);
  if (bytes.length < HEADER_BYTES || bytes.readUInt16BE(0) !== BINDING_SUCCESS) return null;
  if (!bytes.subarray(4, HEADER_BYTES).equals(request.subarray(4, HEADER_BYTES))) return null;
  const end = HEADER_BYTES + bytes.readUInt16BE(2);
  if (end > bytes.length) return null;
  let plain: Ip | null = null;
  // Attribute (§14): TYPE(2) LENGTH(2), then the value, padded to a multiple of 4
  for (let at = HEADER_BYTES; at + 4 <= end;) {
    const type = bytes.readUInt16BE(at);
    const value = bytes.subarray(at + 4, at + 4 + bytes.readUInt16BE(at + 2));
    if (at + 4 + value.length > end) return null;
    if (type === XOR_MAPPED_ADDRESS) return addressIn(value, bytes.subarray(4, HEADER_BYTES));
    if (type === MAPPED_ADDRESS) plain = addressIn(value, new Uint8Array(16)); // RFC 3489: servers of old
    at += 4 + ((value.length + 3) & ~3);
  }
  return plain;
}

// Address (§14.1, §14.2): ZERO(1) FAMILY(1) PORT(2) ADDRESS(4 or 16), the latter mixed with cookie and transaction
function addressIn(value: Uint8Array, mix: Uint8Array): Ip | null {
  const length = ADDRESS_BYTES.get(value[1] ?? 0);
  if (length === undefined || value.length !== 4 + length) return null;
  return ipFromBytes(Uint8Array.from({ length }, (_, at) => byteAt(value, 4 + at) ^ byteAt(mix, at)));
}
