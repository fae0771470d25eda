import type { OneMessage, VmessDirection, VmessResponse } from "#core/wire-details.ts";
import { byteAt } from "#lib/at.ts";
import { openSingle } from "#protocols/crypto/aead.ts";
import { MAX_HEADER_BYTES, RESPONSE_LENGTH_BYTES } from "#protocols/vmess/header.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { BROKEN, SealedReader } from "./sealed-reader.ts";
import type { VmessCipher } from "./vmess-cipher.ts";
import type { WireIo } from "./wire.ts";

/** Of a response's header, without its tag. */
const LEAST_HEADER_BYTES = 4;

export interface VmessRest {
  /** Read from the socket already. */
  readonly rest: Uint8Array | null;
  /** Comes in front of the chunks; null: it was read. */
  readonly awaited: VmessResponse | null;
}

/** The direction from the peer, in chunks; a client's begins with the response. */
export class VmessReader extends SealedReader {
  readonly #cipher: VmessCipher;
  #awaited: VmessResponse | null;
  /** Of the sealed response, once its length was read; -1: it was not. */
  #responseBytes: number;
  /** Of the chunk that comes next; -1: a size comes next. */
  #size: number;
  #padding: number;
  #mayEnd: boolean;

  constructor(
    memory: CipherMemory,
    below: SealedBelow,
    cipher: VmessCipher,
    { size, padding, mayEnd }: VmessDirection,
    { rest, awaited }: VmessRest,
  ) {
    super(memory, below, rest);
    this.#cipher = cipher;
    this.#size = size;
    this.#padding = padding;
    this.#mayEnd = mayEnd;
    this.#awaited = awaited;
    this.#responseBytes = awaited?.bytes ?? -1;
  }

  /** An end without a response, or within a chunk. */
  protected get isCut(): boolean {
    return this.#size >= 0 || this.#awaited !== null;
  }

  protected due(): number {
    if (this.#awaited === null) return Math.max(0, this.#size);
    return this.#responseBytes < 0 ? RESPONSE_LENGTH_BYTES : this.#responseBytes;
  }

  protected open(_io: WireIo, end: number, room: number): number {
    if (this.#awaited !== null && !this.#openResponse(this.#awaited, end)) return 0;
    let bytes = 0;
    while (this.#chunkArrived(end)) {
      const plainBytes = this.#size - this.#padding - TAG_BYTES;
      this.isFull = this.isSated || (bytes > 0 && bytes + plainBytes > room);
      if (this.isFull || !this.#openChunk(bytes, plainBytes)) break;
      bytes += plainBytes;
    }
    return bytes;
  }

  /** Reads the size where it is due. Is all of the chunk there? */
  #chunkArrived(end: number): boolean {
    if (this.last !== null) return false;
    const cipher = this.#cipher;
    if (this.#size < 0) {
      if (end - this.at < cipher.sizeBytes) return false;
      this.#padding = cipher.nextPadding();
      this.#size = cipher.readSize(this.at);
      this.at += cipher.sizeBytes;
      if (this.#size < TAG_BYTES + this.#padding || this.#size > 0xffff) this.last = BROKEN;
    }
    return this.last === null && end - this.at >= this.#size;
  }

  /** As far behind the start of the thread's buffer. False: nothing more is to be read, for this was an end or a fault. */
  #openChunk(to: number, plainBytes: number): boolean {
    const { evp, plainAddresses, wireAddresses } = this.memory;
    this.#cipher.begin();
    const isAuthentic = evp.openAt(
      this.#cipher.context,
      plainAddresses.of(to),
      wireAddresses.of(this.at),
      plainBytes,
    );
    this.#cipher.advance();
    this.opened(this.#cipher.sizeBytes + this.#size, plainBytes);
    this.at += this.#size;
    this.#size = -1;
    if (!isAuthentic) this.last = BROKEN;
    else if (plainBytes === 0 && this.#mayEnd) this.last = 0;
    this.#mayEnd = true;
    return this.last === null;
  }

  /** True: it is behind us. */
  #openResponse(awaited: VmessResponse, end: number): boolean {
    if (this.#responseBytes < 0) {
      if (end - this.at < RESPONSE_LENGTH_BYTES) return false;
      const length = this.#openOne(awaited.length, 2);
      const bytes = length === null ? 0 : length.readUInt16BE();
      if (bytes < LEAST_HEADER_BYTES || bytes > MAX_HEADER_BYTES) this.last = BROKEN;
      else this.#responseBytes = bytes + TAG_BYTES;
    }
    if (this.last !== null || end - this.at < this.#responseBytes) return false;
    const header = this.#openOne(awaited.header, this.#responseBytes - TAG_BYTES);
    if (header === null || byteAt(header, 0) !== awaited.verifier) this.last = BROKEN;
    this.#awaited = null;
    return this.last === null;
  }

  /** The plain bytes of a message under a key of its own; null: it is not authentic. */
  #openOne(message: OneMessage, size: number): Buffer | null {
    const sealed = Buffer.from(this.memory.wire.subarray(this.at, this.at + size + TAG_BYTES));
    this.at += sealed.length;
    return openSingle("aes-128-gcm", message, sealed);
  }
}
