/** AnyTLS bytes: the preamble, frames, settings. All integers big endian. */
import { createHash } from "node:crypto";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { byteAt } from "#lib/at.ts";
import { HEADER_BYTES, headerInto, PSH } from "#protocols/shared/stream-frame.ts";

export { encodeFrame, HEADER_BYTES, PSH } from "#protocols/shared/stream-frame.ts";

export const WASTE = 0;
export const SYN = 1;
export const FIN = 3;
export const SETTINGS = 4;
export const ALERT = 5;
export const UPDATE_SCHEME = 6;
export const SYNACK = 7;
export const HEARTBEAT_REQUEST = 8;
export const HEARTBEAT_RESPONSE = 9;
export const SERVER_SETTINGS = 10;

export const MAX_DATA = 0xffff;
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

/** Payload as PSH frames, cut into equal parts where one frame cannot hold it; copied once, into `memory` where it is large enough. */
export function encodeData(streamId: number, data: Buffer, memory: Buffer | null = null): Buffer {
  const count = Math.max(1, Math.ceil(data.length / MAX_DATA));
  const partBytes = Math.ceil(data.length / count);
  const size = data.length + count * HEADER_BYTES;
  const out = memory !== null && memory.length >= size ? memory.subarray(0, size) : Buffer.allocUnsafe(size);
  let end = 0;
  for (let from = 0; from < data.length || from === 0; from += partBytes || 1) {
    const part = data.subarray(from, from + partBytes);
    headerInto(out, end, PSH, streamId, part.length);
    out.set(part, end + HEADER_BYTES);
    end += HEADER_BYTES + part.length;
  }
  return out;
}

/** A frame of padding: `size` zeros behind the header. */
export function encodeWaste(size: number): Buffer {
  const out = Buffer.alloc(HEADER_BYTES + size);
  headerInto(out, 0, WASTE, 0, size);
  return out;
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
