/** One UDP packet of the 2022 edition (SIP022 §3.2): separate header or extended nonce, identity headers, sealed body. */
import { randomBytes } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { Datagram, Destination } from "#core/session.ts";
import { decodeSocksAddress, encodeSocksAddress } from "#net/address/socks-address.ts";
import { type Aead, createAead, TAG_BYTES } from "#protocols/crypto/aead.ts";
import {
  decryptBlock,
  encryptBlock,
  IDENTITY_BYTES,
  openPacketIdentity,
  packetIdentities,
} from "./identity.ts";
import { type Method, sessionSubkey } from "./methods.ts";
import { checkTime, TYPE_CLIENT, TYPE_SERVER } from "./sip022.ts";
import { itemAt } from "#lib/at.ts";

export const SESSION_ID_BYTES = 8;
const HEADER_BYTES = 16;
const EXTENDED_NONCE_BYTES = 24;

/** Session id (8) and packet id (8), in clear once a packet is opened. */
export interface PacketHeader {
  readonly bytes: Buffer;
  readonly sessionId: string;
  readonly packetId: bigint;
}

function headerOf(bytes: Buffer): PacketHeader {
  return { bytes, sessionId: bytes.toString("hex", 0, SESSION_ID_BYTES), packetId: bytes.readBigUInt64BE(8) };
}

/** What seals or opens the bodies of one session. */
export function bodyAead(method: Method, psk: Uint8Array, sessionId: Uint8Array): Aead {
  if (method.aead === "chacha20-poly1305") return createAead("xchacha20-poly1305", psk);
  return createAead(method.aead, sessionSubkey(psk, sessionId));
}

/**
 * `keys`: those whose identity blocks go in front, the sealing user's last. The header is sealed by the first of them.
 */
export function sealPacket022(
  method: Method,
  keys: readonly Uint8Array[],
  aead: Aead,
  header: Buffer,
  body: Buffer,
): Buffer {
  if (method.aead === "chacha20-poly1305") {
    const nonce = randomBytes(EXTENDED_NONCE_BYTES);
    const out = Buffer.allocUnsafe(nonce.length + HEADER_BYTES + body.length + TAG_BYTES);
    aead.sealInto(out, nonce.copy(out), nonce, Buffer.concat([header, body]));
    return out;
  }
  const identities = packetIdentities(keys, header);
  const out = Buffer.allocUnsafe(HEADER_BYTES + identities.length + body.length + TAG_BYTES);
  encryptBlock(itemAt(keys, 0), header).copy(out);
  identities.copy(out, HEADER_BYTES);
  aead.sealInto(out, HEADER_BYTES + identities.length, header.subarray(4), body);
  return out;
}

export interface OpenedPacket {
  readonly header: PacketHeader;
  readonly body: Buffer;
}

/** Answers with the AEAD for a session; `name` is what the identity block holds, null where there is none. */
export type FindAead = (header: PacketHeader, name: string | null) => Aead | null;

/** Null: not a packet that any key of ours opens. `headerKey` opens the separate header, and identity blocks if `identified`. */
export function openPacket022(
  method: Method,
  headerKey: Uint8Array,
  identified: boolean,
  find: FindAead,
  packet: Buffer,
): OpenedPacket | null {
  if (method.aead === "chacha20-poly1305")
    return openExtended(createAead("xchacha20-poly1305", headerKey), packet);
  const bodyAt = HEADER_BYTES + (identified ? IDENTITY_BYTES : 0);
  if (packet.length < bodyAt + TAG_BYTES) return null;
  const header = headerOf(decryptBlock(headerKey, packet.subarray(0, HEADER_BYTES)));
  const name = identified
    ? openPacketIdentity(headerKey, header.bytes, packet.subarray(HEADER_BYTES, bodyAt)).toString("latin1")
    : null;
  const body = find(header, name)?.open(header.bytes.subarray(4), packet.subarray(bodyAt)) ?? null;
  return body === null ? null : { header, body };
}

function openExtended(aead: Aead, packet: Buffer): OpenedPacket | null {
  if (packet.length < EXTENDED_NONCE_BYTES + HEADER_BYTES + TAG_BYTES) return null;
  const plain = aead.open(packet.subarray(0, EXTENDED_NONCE_BYTES), packet.subarray(EXTENDED_NONCE_BYTES));
  if (plain === null || plain.length < HEADER_BYTES) return null;
  return { header: headerOf(plain.subarray(0, HEADER_BYTES)), body: plain.subarray(HEADER_BYTES) };
}

export interface BodyFields {
  readonly nowMs: number;
  /** In a reply: the client's session; null in a request. */
  readonly clientSession: Buffer | null;
  readonly padding: Buffer;
  readonly destination: Destination;
  readonly payload: Uint8Array;
}

// Body: TYPE(1) TIME(8) [reply: CLIENT SESSION(8)] PADLEN(2) PADDING ADDRESS DATA.
export function encodeBody({ nowMs, clientSession, padding, destination, payload }: BodyFields): Buffer {
  const reply = clientSession !== null;
  const fixed = Buffer.alloc(9 + (reply ? SESSION_ID_BYTES : 0) + 2);
  fixed[0] = reply ? TYPE_SERVER : TYPE_CLIENT;
  fixed.writeBigUInt64BE(BigInt(Math.floor(nowMs / 1000)), 1);
  clientSession?.copy(fixed, 9);
  fixed.writeUInt16BE(padding.length, fixed.length - 2);
  return Buffer.concat([fixed, padding, encodeSocksAddress(destination, reply ? "ip" : "host"), payload]);
}

/** `clientSession` null: a request is expected. Throws `ProtocolError`. */
export function decodeBody(body: Buffer, clientSession: Buffer | null, nowMs: number): Datagram {
  const type = clientSession === null ? TYPE_CLIENT : TYPE_SERVER;
  const paddingAt = 9 + (clientSession === null ? 0 : SESSION_ID_BYTES);
  if (body.length < paddingAt + 2) throw new ProtocolError("a packet's body ends within its fields");
  if (body[0] !== type) throw new ProtocolError(`a packet of type ${body[0]}, expected ${type}`);
  checkTime(body, 1, nowMs);
  if (clientSession !== null && !body.subarray(9, paddingAt).equals(clientSession))
    throw new ProtocolError("a reply to another session");
  const address = decodeSocksAddress(body, paddingAt + 2 + body.readUInt16BE(paddingAt));
  if (address === null) throw new ProtocolError("a packet's body ends within its address");
  return { payload: body.subarray(address.next), destination: address.destination };
}
