import type { WireIo } from "./wire.ts";
import { type CipherMemory, LENGTH_BYTES, TAG_BYTES } from "./cipher-memory.ts";
import { BROKEN, SealedReader } from "./sealed-reader.ts";
import { byteAt } from "#lib/at.ts";

export interface ShadowsocksDirection {
  /** Of the cipher's context, which is its owner's. */
  readonly context: bigint;
  /** Messages so far. */
  readonly count: number;
  /** Of plain bytes in a chunk, at most. */
  readonly chunkBytes: number;
}

/** The direction from the peer, in chunks: each is a length and its payload, sealed one by one. */
export class ShadowsocksReader extends SealedReader {
  readonly #context: bigint;
  readonly #chunkBytes: number;
  #count: number;
  /** Of the payload that comes next; -1: a length comes next. */
  #payloadBytes: number;

  /** `rest` was read from the socket already; `payloadBytes` of a length that was opened already, or -1. */
  constructor(
    memory: CipherMemory,
    fd: number,
    { context, count, chunkBytes }: ShadowsocksDirection,
    payloadBytes: number,
    rest: Uint8Array | null,
  ) {
    super(memory, fd, rest);
    this.#context = context;
    this.#count = count;
    this.#chunkBytes = chunkBytes;
    this.#payloadBytes = payloadBytes;
  }

  protected get isCut(): boolean {
    return this.#payloadBytes >= 0;
  }

  protected wanted(size: number): number {
    return Math.max(size, this.#payloadBytes, LENGTH_BYTES) + TAG_BYTES;
  }

  protected open(_io: WireIo, end: number, room: number): number {
    const { plainAt } = this.memory;
    let bytes = 0;
    while (this.#payloadArrived(end)) {
      const next = bytes + this.#payloadBytes;
      if (bytes > 0 && next > room) {
        this.isFull = true;
        break;
      }
      if (!this.#openPart(plainAt + BigInt(bytes), this.#payloadBytes)) break;
      this.#payloadBytes = -1;
      bytes = next;
    }
    return bytes;
  }

  /** Opens the length where it is due. Is all of the payload there? */
  #payloadArrived(end: number): boolean {
    if (this.#payloadBytes < 0) {
      const { length, lengthAt } = this.memory;
      if (end - this.at < LENGTH_BYTES + TAG_BYTES || !this.#openPart(lengthAt, LENGTH_BYTES)) return false;
      const bytes = (byteAt(length, 0) << 8) | byteAt(length, 1);
      if (bytes > this.#chunkBytes) {
        this.last = BROKEN;
        return false;
      }
      this.#payloadBytes = bytes;
    }
    return this.last === null && end - this.at >= this.#payloadBytes + TAG_BYTES;
  }

  #openPart(to: bigint, size: number): boolean {
    const { evp, wireAt } = this.memory;
    evp.beginCounted(this.#context, this.#count);
    if (!evp.openAt(this.#context, to, wireAt + BigInt(this.at), size)) {
      this.last = BROKEN;
      return false;
    }
    this.#count++;
    this.at += size + TAG_BYTES;
    return true;
  }
}
