/** AnyTLS bytes: the preamble, frames, settings. All integers big endian. */
import { createHash } from "node:crypto";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { byteAt } from "#lib/at.ts";
import { HEADER_BYTES } from "#protocols/shared/stream-frame.ts";

export {
  encodeData,
  encodeFrame,
  encodeWaste,
  HEADER_BYTES,
  MAX_DATA,
  PSH,
  WASTE,
} from "#protocols/shared/stream-frame.ts";

export const SYN = 1;
export const FIN = 3;
export const SETTINGS = 4;
export const ALERT = 5;
export const UPDATE_SCHEME = 6;
export const SYNACK = 7;
export const HEARTBEAT_REQUEST = 8;
export const HEARTBEAT_RESPONSE = 9;
export const SERVER_SETTINGS = 10;

export const HASH_BYTES = 32;

/** What a client proves itself by. */
export function passwordHash(password: string): Buffer {
  return createHash("sha256").update(password).digest();
}

// Preamble, the first bytes inside TLS: SHA-256 of the password(32) PADLEN(2) PADDING of zeros.
export function encodePreamble(hash: Buffer, paddingBytes: number): Buffer {
  const out = Buffer.alloc(HASH_BYTES + 2 + paddingBytes);
  hash.copy(out);
  out.writeUInt16BE(paddingBytes, HASH_BYTES);
  return out;
}

export interface Frame {
  readonly command: number;
  readonly streamId: number;
  readonly data: Buffer;
}

/** Takes a whole frame; null: more bytes are needed. Every command's data is taken, whatever the command. */
export function takeFrame(arrived: ByteQueue): Frame | null {
  const header = arrived.peek(HEADER_BYTES);
  if (header === null) return null;
  const size = HEADER_BYTES + header.readUInt16BE(5);
  const command = byteAt(header, 0);
  const streamId = header.readUInt32BE(1);
  const bytes = arrived.take(size);
  return bytes === null ? null : { command, streamId, data: bytes.subarray(HEADER_BYTES) };
}

export type Settings = ReadonlyMap<string, string>;

/** `key=value` lines joined by LF, without one at the end. */
export function encodeSettings(settings: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
  return Buffer.from(lines.join("\n"));
}

/** Lines without `=` are passed over. */
export function decodeSettings(data: Buffer): Settings {
  const settings = new Map<string, string>();
  for (const line of data.toString().split("\n")) {
    const at = line.indexOf("=");
    if (at > 0) settings.set(line.slice(0, at), line.slice(at + 1));
  }
  return settings;
}

/** The protocol version that a peer announces; 1 where it says nothing. */
export function versionIn(settings: Settings): number {
  const version = Number(settings.get("v"));
  return Number.isInteger(version) && version > 0 ? version : 1;
}
