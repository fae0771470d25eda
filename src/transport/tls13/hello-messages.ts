/** ClientHello and ServerHello (RFC 8446 §4.1), read and written. */
import { createHash } from "node:crypto";
import { TlsFault } from "./alerts.ts";
import { encodeExtensions, EXTENSION, type Extensions, readExtensions } from "./extensions.ts";
import { encodeMessage, MESSAGE } from "./handshake-messages.ts";
import { numbers16, u16, vector16, vector8, WireReader } from "./wire.ts";

export const TLS_1_3 = 0x0304;
const LEGACY_VERSION = 0x0303;
const RANDOM_BYTES = 32;
const MAX_SESSION_ID_BYTES = 32;

/** The random of a ServerHello that asks for another ClientHello (RFC 8446 §4.1.3). */
export const RETRY_RANDOM = createHash("sha256").update("HelloRetryRequest").digest();

/** `DOWNGRD` and 0 or 1: a server of TLS 1.3 that was made to speak an older version (RFC 8446 §4.1.3). */
const DOWNGRADE = Buffer.from("DOWNGRD", "latin1");

export interface ClientHello {
  readonly random: Buffer;
  readonly sessionId: Buffer;
  readonly suites: readonly number[];
  readonly extensions: Extensions;
}

/** The body of the message. Throws `TlsFault`. */
export function decodeClientHello(body: Buffer): ClientHello {
  const reader = new WireReader(body, "ClientHello");
  if (reader.u16() < LEGACY_VERSION) throw new TlsFault("protocol_version", "a client of an old version");
  const random = reader.bytes(RANDOM_BYTES);
  const sessionId = readSessionId(reader, "ClientHello");
  const suites = reader.numbers16();
  if (!reader.vector8(1).includes(0)) throw new TlsFault("illegal_parameter", "ClientHello: compression");
  const extensions = reader.left === 0 ? new Map<number, Buffer>() : readExtensions(reader, "ClientHello");
  reader.end();
  return { random, sessionId, suites, extensions };
}

/** The body of the message, as `decodeClientHello` reads it. */
export function encodeClientHello({ random, sessionId, suites, extensions }: ClientHello): Buffer {
  return Buffer.concat([
    u16(LEGACY_VERSION),
    random,
    vector8(sessionId),
    vector16(numbers16(suites)),
    vector8(Buffer.of(0)),
    encodeExtensions(extensions),
  ]);
}

/** Shares of a ClientHello by group, in its order (RFC 8446 §4.2.8). Throws `TlsFault`. */
export function readKeyShares(body: Buffer): ReadonlyMap<number, Buffer> {
  const reader = new WireReader(body, "key_share");
  const list = new WireReader(reader.vector16(), "key_share");
  reader.end();
  const shares = new Map<number, Buffer>();
  while (list.left > 0) {
    const group = list.u16();
    if (shares.has(group)) throw new TlsFault("illegal_parameter", "key_share: a group stands twice");
    shares.set(group, list.vector16(1));
  }
  return shares;
}

export interface ServerHello {
  readonly random: Buffer;
  readonly sessionId: Buffer;
  readonly suite: number;
  readonly extensions: Extensions;
  /** It asks for another ClientHello. */
  readonly isRetry: boolean;
  /** What the server speaks, such as `TLS_1_3`. */
  readonly version: number;
  /** A server of TLS 1.3 marks that it was made to speak an older version. */
  readonly isDowngrade: boolean;
}

/** The body of the message. Throws `TlsFault`. */
export function decodeServerHello(body: Buffer): ServerHello {
  const reader = new WireReader(body, "ServerHello");
  const legacy = reader.u16();
  const random = reader.bytes(RANDOM_BYTES);
  const sessionId = readSessionId(reader, "ServerHello");
  const suite = reader.u16();
  if (reader.u8() !== 0) throw new TlsFault("illegal_parameter", "ServerHello: compression");
  const extensions = reader.left === 0 ? new Map<number, Buffer>() : readExtensions(reader, "ServerHello");
  reader.end();
  const chosen = extensions.get(EXTENSION.supportedVersions);
  const version = chosen === undefined ? legacy : readNumber(chosen, "supported_versions");
  if (version === TLS_1_3 && legacy !== LEGACY_VERSION)
    throw new TlsFault("illegal_parameter", "ServerHello: legacy_version");
  const isDowngrade = random.subarray(24, 31).equals(DOWNGRADE) && (random[31] ?? 2) <= 1;
  return { random, sessionId, suite, extensions, isRetry: random.equals(RETRY_RANDOM), version, isDowngrade };
}

function readSessionId(reader: WireReader, what: string): Buffer {
  const id = reader.vector8();
  if (id.length > MAX_SESSION_ID_BYTES) throw new TlsFault("decode_error", `${what}: session id`);
  return id;
}

/** An extension of one number. Throws `TlsFault`. */
export function readNumber(body: Buffer, what: string): number {
  const reader = new WireReader(body, what);
  const value = reader.u16();
  reader.end();
  return value;
}

/** The server's share: GROUP(2) KEY(2+n). Throws `TlsFault`. */
export function readServerShare(body: Buffer): { readonly group: number; readonly share: Buffer } {
  const reader = new WireReader(body, "key_share");
  const group = reader.u16();
  const share = reader.vector16(1);
  reader.end();
  return { group, share };
}

export interface ServerHelloFields {
  readonly random: Uint8Array;
  /** That of the ClientHello. */
  readonly sessionId: Uint8Array;
  readonly suite: number;
  readonly extensions: Extensions;
}

/** The whole message; with `RETRY_RANDOM` it is a HelloRetryRequest. */
export function encodeServerHello({ random, sessionId, suite, extensions }: ServerHelloFields): Buffer {
  return encodeMessage(
    MESSAGE.serverHello,
    u16(LEGACY_VERSION),
    random,
    vector8(sessionId),
    u16(suite),
    Buffer.of(0),
    encodeExtensions(extensions),
  );
}
