/** Reads what opens a client's stream, in any split, and finds user and destination. */
import { ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import type { HandshakeStep } from "#net/listen/read-handshake.ts";
import { decodeSocksAddress, MAX_SOCKS_ADDRESS } from "#net/address/socks-address.ts";
import { createAead, TAG_BYTES } from "#protocols/crypto/aead.ts";
import {
  ivBytesOf,
  openStreamCipher,
  type StreamCipher,
  type StreamCipherName,
} from "#protocols/crypto/stream-cipher.ts";
import type { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { type ChunkOpener, LENGTH_BYTES } from "./chunks.ts";
import { IDENTITY_BYTES, openStreamIdentity } from "./identity.ts";
import { sip004Subkey } from "./methods.ts";
import { plainCodec } from "./plain.ts";
import type { ServerKeys, UserKey } from "./server-keys.ts";
import { Sip004Codec, sip004Opener } from "./sip004.ts";
import {
  type Chance,
  checkCovered,
  checkTime,
  MAX_PADDING,
  sip022Opener,
  Sip022ServerCodec,
  TYPE_CLIENT,
} from "./sip022.ts";
import { UnauthenticatedCodec } from "./stream-codec.ts";
import { itemAt } from "#lib/at.ts";

export interface Request {
  readonly destination: Destination;
  readonly user: string | null;
  readonly codec: StreamCodec;
  /** Plain bytes that came with the header. */
  readonly payload: Buffer;
}

/** What `serverHandshake` needs to know of salts. */
export type SaltMemory = Pick<ReplayFilter, "has" | "add" | "covers">;

/** For a request that was let in before, and is read once more: its time was looked at then. */
export const EVERY_SALT: SaltMemory = { has: () => false, add: () => true, covers: () => true };

/** One step function per connection. Throws `ProtocolError` for every kind of unwelcome peer alike. */
export function serverHandshake(keys: ServerKeys, salts: SaltMemory, chance: Chance): HandshakeStep<Request> {
  if (keys.method.edition === "plain") return plainStep;
  if (keys.method.stream !== undefined) return streamStep(keys.method.stream, keys, salts);
  return keys.method.edition === "sip004" ? sip004Step(keys, salts) : sip022Step(keys, salts, chance);
}

function plainStep(arrived: ByteQueue): Request | null {
  const head = arrived.peekUpTo(MAX_SOCKS_ADDRESS);
  const address = decodeSocksAddress(head);
  if (address === null) return null;
  arrived.skip(address.next);
  const { destination } = address;
  return { destination, user: null, codec: plainCodec(Buffer.alloc(0)), payload: Buffer.alloc(0) };
}

/** Nothing proves the key: under a wrong one the address is noise, which most of the time is none. */
function streamStep(
  cipher: StreamCipherName,
  { candidates }: ServerKeys,
  salts: SaltMemory,
): HandshakeStep<Request> {
  const master = itemAt(candidates, 0).key;
  let opener: StreamCipher | null = null;
  let plain: Buffer = Buffer.alloc(0);
  return (arrived) => {
    if (opener === null) {
      const iv = arrived.take(ivBytesOf(cipher));
      if (iv === null) return null;
      if (!salts.add(Buffer.from(iv))) throw new ProtocolError("the IV was used before");
      opener = openStreamCipher(cipher, master, iv, "open");
    }
    plain = Buffer.concat([plain, opener(arrived.takeAll())]);
    const address = decodeSocksAddress(plain);
    if (address === null) return null;
    const codec = new UnauthenticatedCodec({ cipher, master, request: Buffer.alloc(0), opener });
    return {
      destination: address.destination,
      user: null,
      codec,
      payload: plain.subarray(address.next),
    };
  };
}

function sip004Step(keys: ServerKeys, salts: SaltMemory): HandshakeStep<Request> {
  const { method } = keys;
  let found: { readonly entry: UserKey; readonly salt: Buffer; readonly opener: ChunkOpener } | null = null;
  let fresh = false;
  let plain: Buffer = Buffer.alloc(0);
  return (arrived) => {
    if (found === null) {
      const head = arrived.peek(method.keyBytes + LENGTH_BYTES);
      if (head === null) return null;
      const salt = Buffer.from(head.subarray(0, method.keyBytes));
      // In this order, so that a replay takes as long as a wrong key.
      const entry = findUser(keys, salt, head.subarray(method.keyBytes));
      if (salts.has(salt)) throw new ProtocolError("the salt was used before");
      arrived.skip(method.keyBytes);
      found = { entry, salt, opener: sip004Opener(method, entry.key, salt) };
    }
    const { entry, salt, opener } = found;
    // The address may come in pieces; it is small, so few chunks are enough.
    for (let chunk = opener.nextChunk(arrived); chunk !== null; chunk = opener.nextChunk(arrived)) {
      if (!fresh && !salts.add(salt)) throw new ProtocolError("the salt was used before");
      fresh = true;
      plain = plain.length === 0 ? chunk : Buffer.concat([plain, chunk]);
      const address = decodeSocksAddress(plain);
      if (address === null) continue;
      const codec = new Sip004Codec({ method, master: entry.key, request: Buffer.alloc(0), opener });
      const payload = plain.subarray(address.next);
      return { destination: address.destination, user: entry.user, codec, payload };
    }
    return null;
  };
}

/** Tries every user's key on the first length: one HKDF and one open each. */
function findUser({ method, candidates }: ServerKeys, salt: Buffer, sealedLength: Buffer): UserKey {
  for (const entry of candidates) {
    const aead = createAead(method.aead, sip004Subkey(entry.key, salt));
    if (aead.open(Buffer.alloc(aead.nonceBytes), sealedLength) !== null) return entry;
  }
  throw new ProtocolError("no key opens the first chunk");
}

function sip022Step(keys: ServerKeys, salts: SaltMemory, chance: Chance): HandshakeStep<Request> {
  const { method, identity } = keys;
  const saltEnd = method.keyBytes;
  const fixedAt = saltEnd + (identity === null ? 0 : IDENTITY_BYTES);
  let opened: { entry: UserKey; salt: Buffer; opener: ChunkOpener; variableBytes: number } | null = null;
  return (arrived) => {
    if (opened === null) {
      const head = arrived.take(fixedAt + 11 + TAG_BYTES);
      if (head === null) return null;
      const salt = Buffer.from(head.subarray(0, saltEnd));
      const entry = identify(keys, salt, head.subarray(saltEnd, fixedAt));
      const opener = sip022Opener(method, entry.key, salt);
      const fixed = opener.openPart(head.subarray(fixedAt));
      if (fixed[0] !== TYPE_CLIENT) throw new ProtocolError(`a request of type ${fixed[0]}, expected 0`);
      if (salts !== EVERY_SALT) checkTime(fixed, 1, chance.nowMs());
      checkCovered(salts, fixed, 1, chance.nowMs());
      if (!salts.add(salt)) {
        opener[Symbol.dispose](); // a replay may come often
        throw new ProtocolError("the salt was used before");
      }
      opened = { entry, salt, opener, variableBytes: fixed.readUInt16BE(9) };
    }
    const { entry, salt, opener, variableBytes } = opened;
    const sealed = arrived.take(variableBytes + TAG_BYTES);
    if (sealed === null) return null;
    const { destination, payload } = readVariable(opener.openPart(sealed));
    const codec = new Sip022ServerCodec({ method, psk: entry.key, requestSalt: salt, opener, chance });
    return { destination, user: entry.user, codec, payload };
  };
}

function identify(keys: ServerKeys, salt: Buffer, block: Buffer): UserKey {
  if (keys.identity === null) return itemAt(keys.candidates, 0);
  const entry = keys.byName.get(openStreamIdentity(keys.identity, salt, block).toString("latin1"));
  if (entry === undefined) throw new ProtocolError("the identity header names no user");
  return entry;
}

function readVariable(variable: Buffer): { destination: Destination; payload: Buffer } {
  const address = decodeSocksAddress(variable);
  if (address === null || variable.length < address.next + 2)
    throw new ProtocolError("the variable header ends within its fields");
  const paddingBytes = variable.readUInt16BE(address.next);
  const start = address.next + 2 + paddingBytes;
  if (paddingBytes > MAX_PADDING || start > variable.length)
    throw new ProtocolError(`padding of ${paddingBytes} bytes does not fit`);
  if (paddingBytes === 0 && start === variable.length)
    throw new ProtocolError("a request has padding or a payload");
  return { destination: address.destination, payload: variable.subarray(start) };
}
