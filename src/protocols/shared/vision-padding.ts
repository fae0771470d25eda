/**
 * Blocks of xtls-rprx-vision: [ID(16), first block of a direction only] COMMAND(1) C(2) P(2) CONTENT(C) PADDING(P),
 * big endian. COMMAND: 0 continue, 1 padding ends, 2 padding ends and what follows is outside the outer TLS.
 */
import { randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { UnpaddingState } from "#core/wire-state.ts";
import { byteAt } from "#lib/at.ts";

export const CONTINUE = 0;
export const END = 1;
export const DIRECT = 2;
export type Command = typeof CONTINUE | typeof END | typeof DIRECT;

const ID_BYTES = 16;
const HEADER_BYTES = 5;
const MAX_BLOCK_BYTES = 8192;
/** What always fits into one block, the id included. */
export const MAX_CONTENT_BYTES = MAX_BLOCK_BYTES - ID_BYTES - HEADER_BYTES;
const LONG_THRESHOLD = 900;

/**
 * `long` pads up to about the size of a handshake flight. `id` only in a direction's first block. Padding is zeros: what lies below
 * encrypts it, and no peer looks at it.
 */
export function encodeBlock(id: Buffer | null, command: Command, content: Uint8Array, long: boolean): Buffer {
  const idBytes = id === null ? 0 : ID_BYTES;
  const wanted =
    long && content.length < LONG_THRESHOLD
      ? randomInt(500) + LONG_THRESHOLD - content.length
      : randomInt(256);
  const padding = Math.min(wanted, MAX_BLOCK_BYTES - idBytes - HEADER_BYTES - content.length);
  const out = Buffer.allocUnsafe(idBytes + HEADER_BYTES + content.length + padding);
  id?.copy(out, 0);
  out[idBytes] = command;
  out.writeUInt16BE(content.length, idBytes + 1);
  out.writeUInt16BE(padding, idBytes + 3);
  out.set(content, idBytes + HEADER_BYTES);
  return out.fill(0, idBytes + HEADER_BYTES + content.length);
}

export type UnpadState = "padded" | "plain" | "direct";

/** Takes the blocks apart. Pieces may be cut anywhere. */
export class Unpadder {
  readonly #id: Buffer;
  readonly #start = Buffer.alloc(ID_BYTES);
  #startSize = 0;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerSize = 0;
  #content = 0;
  #padding = 0;
  #command = CONTINUE as number;
  state: UnpadState = "padded";

  /** `from`: goes on where another one stopped. */
  constructor(id: Buffer, from: UnpaddingState | null = null) {
    this.#id = id;
    if (from === null) return;
    this.#start.set(from.start);
    this.#startSize = from.start.length;
    this.#header.set(from.header);
    this.#headerSize = from.header.length;
    this.#content = from.contentBytes;
    this.#padding = from.paddingBytes;
    this.#command = from.command;
  }

  /** Only while it is `padded`. */
  get snapshot(): UnpaddingState {
    return {
      start: Uint8Array.from(this.#start.subarray(0, this.#startSize)),
      header: Uint8Array.from(this.#header.subarray(0, this.#headerSize)),
      contentBytes: this.#content,
      paddingBytes: this.#padding,
      command: this.#command,
    };
  }

  /**
   * Hands content to `emit` and answers with what lies behind the last block, where padding has ended in these bytes;
   * null: nothing does. Throws `ProtocolError`.
   */
  take(bytes: Buffer, emit: (content: Buffer) => void): Buffer | null {
    let at = this.#startSize < ID_BYTES ? this.#takeId(bytes, emit) : 0;
    if (this.state !== "padded") return null;
    while (at < bytes.length) {
      if (this.#content > 0) {
        const end = Math.min(bytes.length, at + this.#content);
        this.#content -= end - at;
        emit(bytes.subarray(at, end));
        at = end;
      } else if (this.#padding > 0) {
        const skipped = Math.min(bytes.length - at, this.#padding);
        this.#padding -= skipped;
        at += skipped;
      } else this.#takeHeaderByte(byteAt(bytes, at++));
      if (this.#blockEnded() && this.#command !== CONTINUE) {
        this.state = this.#command === DIRECT ? "direct" : "plain";
        return bytes.subarray(at);
      }
    }
    return null;
  }

  #blockEnded(): boolean {
    if (this.#headerSize < HEADER_BYTES || this.#content > 0 || this.#padding > 0) return false;
    this.#headerSize = 0;
    return true;
  }

  #takeHeaderByte(byte: number): void {
    this.#header[this.#headerSize++] = byte;
    if (this.#headerSize < HEADER_BYTES) return;
    this.#command = byteAt(this.#header, 0);
    if (this.#command > DIRECT)
      throw new ProtocolError(`vision command ${this.#command}, expected 0, 1 or 2`);
    this.#content = this.#header.readUInt16BE(1);
    this.#padding = this.#header.readUInt16BE(3);
  }

  /** A stream that does not begin with the id is not padded at all. */
  #takeId(bytes: Buffer, emit: (content: Buffer) => void): number {
    const size = Math.min(bytes.length, ID_BYTES - this.#startSize);
    bytes.copy(this.#start, this.#startSize, 0, size);
    this.#startSize += size;
    if (this.#start.compare(this.#id, 0, this.#startSize, 0, this.#startSize) === 0) return size;
    this.state = "plain";
    const before = this.#start.subarray(0, this.#startSize - size);
    emit(before.length === 0 ? bytes : Buffer.concat([before, bytes]));
    return bytes.length;
  }
}
