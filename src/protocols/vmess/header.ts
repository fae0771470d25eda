/** Request and response headers (AEAD form; the older one, with MD5 and alterId, is not spoken). All big endian. */
import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import { DialError, ProtocolError } from "#core/errors.ts";
import { drawBytes } from "#lib/random-bytes.ts";
import type { OneMessage, VmessResponse } from "#core/wire-details.ts";
import type { Destination } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, toDestination } from "#net/address/ip.ts";
import { decodeName } from "#net/address/socks-address.ts";
import type { SingleMessage } from "#platform/aead.ts";
import { openSingle, sealSingle, TAG_BYTES } from "#protocols/crypto/aead.ts";
import { encryptBlock } from "#protocols/crypto/block-keys.ts";
import { byteAt } from "#lib/at.ts";
import { answerKey, kdf12, kdf16 } from "./kdf.ts";

export const AUTH_ID_BYTES = 16;
const NONCE_BYTES = 8;
/** AuthID(16) sealed length(2 + 16) nonce(8). */
export const PREFIX_BYTES = AUTH_ID_BYTES + 2 + TAG_BYTES + NONCE_BYTES;
/** More than any header needs: fixed part, a name of 255 bytes, 15 of padding. */
export const MAX_HEADER_BYTES = 512;

/** Of a header, in front of the address. */
const FIXED_BYTES = 38;
const SUM_BYTES = 4;
const NOTHING = Buffer.alloc(0);

export const COMMAND_TCP = 1;
export const COMMAND_UDP = 2;
export const COMMAND_MUX = 3;

export const OPTION_CHUNKS = 1;
export const OPTION_MASKING = 4;
export const OPTION_PADDING = 8;
export const OPTION_AUTHENTICATED_LENGTH = 16;

export const SECURITY_AES = 3;
export const SECURITY_CHACHA = 4;
export const SECURITY_NONE = 5;
export const SECURITY_ZERO = 6;

export interface RequestHeader {
  readonly iv: Buffer;
  readonly key: Buffer;
  /** Comes back in the response. */
  readonly verifier: number;
  readonly options: number;
  readonly security: number;
  readonly command: number;
  /** Null for MUX, whose frames have their own. */
  readonly destination: Destination | null;
}

/** Made once per user and kept. */
export function authIdKey(commandKeyOfUser: Uint8Array): Buffer {
  return kdf16(commandKeyOfUser, "AES Auth ID Encryption");
}

// AuthID: AES-128-ECB of TIME(8) RANDOM(4) CRC32 of these 12(4).
function sealAuthId(key: Uint8Array, unixSeconds: number, random: Uint8Array): Buffer {
  const plain = Buffer.alloc(AUTH_ID_BYTES);
  plain.writeBigInt64BE(BigInt(unixSeconds));
  plain.set(random.subarray(0, 4), 8);
  plain.writeUInt32BE(crc32(plain.subarray(0, 12)), 12);
  return encryptBlock(key, plain);
}

/** The time in a decrypted one; null: it was made with another key. */
export function timeOfAuthId(plain: Buffer): number | null {
  // No clock is beyond the year 2106: of a thousand keys that are tried all but the right one end here.
  if (plain.readUInt32BE(0) !== 0) return null;
  return crc32(plain.subarray(0, 12)) === plain.readUInt32BE(12) ? plain.readUInt32BE(4) : null;
}

export interface Chance {
  readonly authRandom: Buffer;
  readonly nonce: Buffer;
  readonly padding: Buffer;
  readonly unixSeconds: number;
}

export function newChance(nowMs: number): Chance {
  return {
    authRandom: drawBytes(4),
    nonce: drawBytes(NONCE_BYTES),
    padding: drawBytes(randomInt(16)),
    unixSeconds: Math.floor(nowMs / 1000),
  };
}

export function sealRequest(userKey: Uint8Array, header: RequestHeader, chance: Chance): Buffer {
  const plain = encodeRequest(header, chance.padding);
  const authId = sealAuthId(authIdKey(userKey), chance.unixSeconds, chance.authRandom);
  const { nonce } = chance;
  const out = Buffer.allocUnsafe(PREFIX_BYTES + plain.length + TAG_BYTES);
  out.set(authId);
  const length = Buffer.from([plain.length >> 8, plain.length & 0xff]);
  const nonceAt = sealPart(headerMessage(userKey, "_Length", authId, nonce), length, out, AUTH_ID_BYTES);
  out.set(nonce, nonceAt);
  sealPart(headerMessage(userKey, "", authId, nonce), plain, out, PREFIX_BYTES);
  return out;
}

const sealPart = (message: SingleMessage, plain: Uint8Array, out: Buffer, at: number): number =>
  sealSingle("aes-128-gcm", message, plain, out, at);

/** Of the header, or of its length. */
function headerMessage(
  userKey: Uint8Array,
  part: "_Length" | "",
  authId: Uint8Array,
  nonce: Uint8Array,
): SingleMessage {
  return {
    key: kdf16(userKey, `VMess Header AEAD Key${part}`, authId, nonce),
    nonce: kdf12(userKey, `VMess Header AEAD Nonce${part}`, authId, nonce),
    aad: authId,
  };
}

// VER(1)=1 IV(16) KEY(16) V(1) OPTIONS(1) PADLEN:SECURITY(1) 0(1) COMMAND(1) [PORT(2) ADDRESS] PADDING FNV1A(4)
function encodeRequest(header: RequestHeader, padding: Buffer): Buffer {
  const { iv, key, verifier, options, security, command, destination } = header;
  const address = destination === null ? NOTHING : encodeAddress(destination);
  const sumAt = FIXED_BYTES + address.length + padding.length;
  const out = Buffer.allocUnsafe(sumAt + SUM_BYTES);
  out[0] = 1;
  out.set(iv, 1);
  out.set(key, 17);
  out[33] = verifier;
  out[34] = options;
  out[35] = (padding.length << 4) | security;
  out[36] = 0;
  out[37] = command;
  out.set(address, FIXED_BYTES);
  out.set(padding, FIXED_BYTES + address.length);
  out.writeUInt32BE(fnv1a(out, sumAt), sumAt);
  return out;
}

// PORT(2) TYPE(1): 1 IPv4, 2 name, 3 IPv6; ADDRESS
function encodeAddress({ host, ip, port }: Destination): Buffer {
  const name = host === null ? null : Buffer.from(host);
  if (name !== null && (name.length === 0 || name.length > 255))
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  const address = name ?? bytesOfIp(ip ?? ("" as never));
  const start = name === null ? 3 : 4;
  const out = Buffer.allocUnsafe(start + address.length);
  out.writeUInt16BE(port, 0);
  out[2] = name !== null ? 2 : address.length === 4 ? 1 : 3;
  if (name !== null) out[3] = name.length;
  out.set(address, start);
  return out;
}

/** Of the bytes in front of `end`. */
export function fnv1a(bytes: Uint8Array, end = bytes.length): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < end; at++) hash = Math.imul(hash ^ byteAt(bytes, at), 0x01000193);
  return hash >>> 0;
}

/** How long the sealed header behind the prefix is. Throws `ProtocolError` where the prefix was not made by this user. */
export function openLength(userKey: Uint8Array, prefix: Buffer): number {
  const authId = prefix.subarray(0, AUTH_ID_BYTES);
  const message = headerMessage(userKey, "_Length", authId, prefix.subarray(-NONCE_BYTES));
  const length = openSingle("aes-128-gcm", message, prefix.subarray(AUTH_ID_BYTES, -NONCE_BYTES));
  const size = length?.readUInt16BE() ?? 0;
  if (size === 0 || size > MAX_HEADER_BYTES)
    throw new ProtocolError("the header's length does not authenticate");
  return size + TAG_BYTES;
}

/** Throws `ProtocolError`. */
export function openRequest(userKey: Uint8Array, prefix: Buffer, sealed: Buffer): RequestHeader {
  const authId = prefix.subarray(0, AUTH_ID_BYTES);
  const message = headerMessage(userKey, "", authId, prefix.subarray(-NONCE_BYTES));
  const plain = openSingle("aes-128-gcm", message, sealed);
  if (plain === null) throw new ProtocolError("the header does not authenticate");
  return decodeRequest(plain);
}

function decodeRequest(plain: Buffer): RequestHeader {
  const end = plain.length - SUM_BYTES;
  if (end < FIXED_BYTES || fnv1a(plain, end) !== plain.readUInt32BE(end))
    throw new ProtocolError("the header's checksum is wrong");
  if (plain[0] !== 1) throw new ProtocolError(`version ${plain[0]}, expected 1`);
  const verifier = byteAt(plain, 33);
  const options = byteAt(plain, 34);
  const mixed = byteAt(plain, 35);
  const command = byteAt(plain, 37);
  if (command < COMMAND_TCP || command > COMMAND_MUX)
    throw new ProtocolError(`an unknown command ${command}`);
  const address = plain.subarray(FIXED_BYTES, end - (mixed >> 4));
  return {
    iv: Buffer.from(plain.subarray(1, 17)),
    key: Buffer.from(plain.subarray(17, 33)),
    verifier,
    options,
    security: mixed & 15,
    command,
    destination: command === COMMAND_MUX ? null : decodeAddress(address),
  };
}

function decodeAddress(bytes: Buffer): Destination {
  const [, , type = 0, length = 0] = bytes;
  const start = type === 2 ? 4 : 3;
  const size = type === 1 ? 4 : type === 3 ? 16 : type === 2 ? length : 0;
  if (size === 0 || bytes.length !== start + size) throw new ProtocolError("an address that cannot be read");
  const port = bytes.readUInt16BE(0);
  const address = bytes.subarray(start);
  if (type === 2) return toDestination(decodeName(address), port);
  return { host: null, ip: ipFromBytes(address), port };
}

/** Sealed length(2 + 16). */
export const RESPONSE_LENGTH_BYTES = 2 + TAG_BYTES;

/** Of the two sealed parts of a response: its length, and its header. */
function responseMessages({
  key: requestKey,
  iv: requestIv,
}: RequestHeader): readonly [OneMessage, OneMessage] {
  const [key, iv] = [answerKey(requestKey), answerKey(requestIv)];
  const length = { key: kdf16(key, "AEAD Resp Header Len Key"), nonce: kdf12(iv, "AEAD Resp Header Len IV") };
  return [length, { key: kdf16(key, "AEAD Resp Header Key"), nonce: kdf12(iv, "AEAD Resp Header IV") }];
}

// Response: V(1) OPTIONS(1)=0 COMMAND(1)=0 LENGTH(1)=0
export function sealResponse(request: RequestHeader): Buffer {
  const plain = Buffer.from([request.verifier, 0, 0, 0]);
  const [length, header] = responseMessages(request);
  const out = Buffer.allocUnsafe(RESPONSE_LENGTH_BYTES + plain.length + TAG_BYTES);
  const headerAt = sealPart(length, Buffer.from([0, plain.length]), out, 0);
  sealPart(header, plain, out, headerAt);
  return out;
}

/** By what a response is opened of which `bytes` are known to come, or -1. */
export function awaitedResponse(request: RequestHeader, bytes: number): VmessResponse {
  const [length, header] = responseMessages(request);
  return { length: ownCopy(length), header: ownCopy(header), verifier: request.verifier, bytes };
}

/** In memory that is no other's: a copy for another thread takes no more. */
const ownCopy = ({ key, nonce }: OneMessage): OneMessage => ({
  key: new Uint8Array(key),
  nonce: new Uint8Array(nonce),
});

/** How long the sealed response is. Throws `ProtocolError`. */
export function openResponseLength({ length }: VmessResponse, sealed: Buffer): number {
  const size = openSingle("aes-128-gcm", length, sealed)?.readUInt16BE() ?? 0;
  if (size < 4 || size > MAX_HEADER_BYTES) throw new ProtocolError("the response does not authenticate");
  return size + TAG_BYTES;
}

/** Throws `ProtocolError` where the response belongs to another request. What it commands is passed over. */
export function checkResponse({ header, verifier }: VmessResponse, sealed: Buffer): void {
  const plain = openSingle("aes-128-gcm", header, sealed);
  if (plain === null || plain[0] !== verifier)
    throw new ProtocolError("the response belongs to another request");
}
