/** Request and response headers (AEAD form; the older one, with MD5 and alterId, is not spoken). All big endian. */
import { createCipheriv, createDecipheriv, randomInt, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import { DialError, ProtocolError } from "#core/errors.ts";
import { drawBytes } from "#lib/random-bytes.ts";
import type { VmessResponse } from "#core/wire-details.ts";
import type { Destination } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, toDestination } from "#net/address/ip.ts";
import { decodeName } from "#net/address/socks-address.ts";
import { createAead, seal, TAG_BYTES } from "#protocols/crypto/aead.ts";
import { byteAt } from "#lib/at.ts";
import { answerKey, kdf12, kdf16 } from "./kdf.ts";

export const AUTH_ID_BYTES = 16;
const NONCE_BYTES = 8;
/** AuthID(16) sealed length(2 + 16) nonce(8). */
export const PREFIX_BYTES = AUTH_ID_BYTES + 2 + TAG_BYTES + NONCE_BYTES;
/** More than any header needs: fixed part, a name of 255 bytes, 15 of padding. */
export const MAX_HEADER_BYTES = 512;

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
  return createCipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(plain);
}

/** The time in it; null: made with another key. */
export function openAuthId(key: Uint8Array, authId: Uint8Array): number | null {
  const plain = createDecipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(authId);
  if (crc32(plain.subarray(0, 12)) !== plain.readUInt32BE(12)) return null;
  return Number(plain.readBigInt64BE(0));
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
  const length = Buffer.from([plain.length >> 8, plain.length & 0xff]);
  const { nonce } = chance;
  const [sizes, body] = [
    headerAead(userKey, "_Length", authId, nonce),
    headerAead(userKey, "", authId, nonce),
  ];
  return Buffer.concat([
    authId,
    seal(sizes.aead, sizes.nonce, length, authId),
    nonce,
    seal(body.aead, body.nonce, plain, authId),
  ]);
}

/** Of the header, or of its length. */
function headerAead(userKey: Uint8Array, part: "_Length" | "", authId: Uint8Array, nonce: Uint8Array) {
  return {
    aead: createAead("aes-128-gcm", kdf16(userKey, `VMess Header AEAD Key${part}`, authId, nonce)),
    nonce: kdf12(userKey, `VMess Header AEAD Nonce${part}`, authId, nonce),
  };
}

// VER(1)=1 IV(16) KEY(16) V(1) OPTIONS(1) PADLEN:SECURITY(1) 0(1) COMMAND(1) [PORT(2) ADDRESS] PADDING FNV1A(4)
function encodeRequest(header: RequestHeader, padding: Buffer): Buffer {
  const { iv, key, verifier, options, security, command, destination } = header;
  const tail = Buffer.from([verifier, options, (padding.length << 4) | security, 0, command]);
  const address = destination === null ? Buffer.alloc(0) : encodeAddress(destination);
  const body = Buffer.concat([Buffer.from([1]), iv, key, tail, address, padding]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(fnv1a(body));
  return Buffer.concat([body, sum]);
}

// PORT(2) TYPE(1): 1 IPv4, 2 name, 3 IPv6; ADDRESS
function encodeAddress({ host, ip, port }: Destination): Buffer {
  const name = host === null ? null : Buffer.from(host);
  if (name !== null && (name.length === 0 || name.length > 255))
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  const address = name ?? bytesOfIp(ip ?? ("" as never));
  const head = name === null ? [address.length === 4 ? 1 : 3] : [2, name.length];
  return Buffer.concat([Buffer.from([port >> 8, port & 0xff, ...head]), address]);
}

export function fnv1a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** How long the sealed header behind the prefix is. Throws `ProtocolError` where the prefix was not made by this user. */
export function openLength(userKey: Uint8Array, prefix: Buffer): number {
  const authId = prefix.subarray(0, AUTH_ID_BYTES);
  const sizes = headerAead(userKey, "_Length", authId, prefix.subarray(-NONCE_BYTES));
  const length = sizes.aead.open(sizes.nonce, prefix.subarray(AUTH_ID_BYTES, -NONCE_BYTES), authId);
  const size = length?.readUInt16BE() ?? 0;
  if (size === 0 || size > MAX_HEADER_BYTES)
    throw new ProtocolError("the header's length does not authenticate");
  return size + TAG_BYTES;
}

/** Throws `ProtocolError`. */
export function openRequest(userKey: Uint8Array, prefix: Buffer, sealed: Buffer): RequestHeader {
  const authId = prefix.subarray(0, AUTH_ID_BYTES);
  const body = headerAead(userKey, "", authId, prefix.subarray(-NONCE_BYTES));
  const plain = body.aead.open(body.nonce, sealed, authId);
  if (plain === null) throw new ProtocolError("the header does not authenticate");
  return decodeRequest(plain);
}

const FIXED_BYTES = 38;

function decodeRequest(plain: Buffer): RequestHeader {
  const end = plain.length - 4;
  if (end < FIXED_BYTES || fnv1a(plain.subarray(0, end)) !== plain.readUInt32BE(end))
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

/** Of one of the two sealed parts of a response: its length, or its header. */
function responseKey({ key, iv }: RequestHeader, part: "Len " | ""): { key: Buffer; nonce: Buffer } {
  return {
    key: kdf16(answerKey(key), `AEAD Resp Header ${part}Key`),
    nonce: kdf12(answerKey(iv), `AEAD Resp Header ${part}IV`),
  };
}

function responseAead(request: RequestHeader, part: "Len " | "") {
  const { key, nonce } = responseKey(request, part);
  return { aead: createAead("aes-128-gcm", key), nonce };
}

// Response: V(1) OPTIONS(1)=0 COMMAND(1)=0 LENGTH(1)=0
export function sealResponse(request: RequestHeader): Buffer {
  const plain = Buffer.from([request.verifier, 0, 0, 0]);
  const [sizes, body] = [responseAead(request, "Len "), responseAead(request, "")];
  const length = seal(sizes.aead, sizes.nonce, Buffer.from([0, plain.length]));
  return Buffer.concat([length, seal(body.aead, body.nonce, plain)]);
}

/** By what another thread opens a response of which `bytes` are known to come, or -1. */
export function awaitedResponse(request: RequestHeader, bytes: number): VmessResponse {
  const [length, header] = [responseKey(request, "Len "), responseKey(request, "")];
  return { length, header, verifier: request.verifier, bytes };
}

/** How long the sealed response is. Throws `ProtocolError`. */
export function openResponseLength(request: RequestHeader, sealed: Buffer): number {
  const sizes = responseAead(request, "Len ");
  const length = sizes.aead.open(sizes.nonce, sealed);
  const size = length?.readUInt16BE() ?? 0;
  if (size < 4 || size > MAX_HEADER_BYTES) throw new ProtocolError("the response does not authenticate");
  return size + TAG_BYTES;
}

/** Throws `ProtocolError` where the response belongs to another request. What it commands is passed over. */
export function checkResponse(request: RequestHeader, sealed: Buffer): void {
  const body = responseAead(request, "");
  const plain = body.aead.open(body.nonce, sealed);
  if (plain === null || !timingSafeEqual(plain.subarray(0, 1), Buffer.from([request.verifier])))
    throw new ProtocolError("the response belongs to another request");
}
