import type { WireIo } from "./wire.ts";
import { type CipherMemory, LENGTH_BYTES, TAG_BYTES } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { BROKEN, SealedReader } from "./sealed-reader.ts";
import type { ShadowsocksAnswer } from "./shadowsocks-answer.ts";
import { byteAt } from "#lib/at.ts";

/** Of a chunk, besides its payload. */
const FRAMING_BYTES = LENGTH_BYTES + 2 * TAG_BYTES;

export interface ShadowsocksDirection {
  /** Of the cipher's context, which is its owner's; 0: there is none yet. */
  readonly context: bigint;
  /** Messages so far. */
  readonly count: number;
  /** Of plain bytes in a chunk, at most. */
  readonly chunkBytes: number;
}

export interface ShadowsocksRest {
  /** Read from the socket already. */
  readonly rest: Uint8Array | null;
  /** Comes in front of the chunks; null: it was read. */
  readonly answer: ShadowsocksAnswer | null;
  /** The context that the answer has led to, which is the receiver's. */
  onContext(context: bigint): void;
}

/** The direction from the peer, in chunks: each is a length and its payload, sealed one by one. */
export class ShadowsocksReader extends SealedReader {
  #context: bigint;
  readonly #chunkBytes: number;
  #count: number;
  /** Of the payload that comes next; -1: a length comes next. */
  #payloadBytes: number;
  /** Null: it was read. */
  #answer: ShadowsocksAnswer | null;
  readonly #onContext: (context: bigint) => void;

  /** `payloadBytes` of a length that was opened already, or -1. */
  constructor(
    memory: CipherMemory,
    below: SealedBelow,
    { context, count, chunkBytes }: ShadowsocksDirection,
    payloadBytes: number,
    { rest, answer, onContext }: ShadowsocksRest,
  ) {
    super(memory, below, rest);
    this.#context = context;
    this.#count = count;
    this.#chunkBytes = chunkBytes;
    this.#payloadBytes = payloadBytes;
    this.#answer = answer;
    this.#onContext = onContext;
  }

  protected get isCut(): boolean {
    return this.#payloadBytes >= 0;
  }

  protected due(): number {
    if (this.#answer !== null) return this.#answer.bytes;
    return this.#payloadBytes < 0 ? 0 : this.#payloadBytes + TAG_BYTES;
  }

  protected open(_io: WireIo, end: number, room: number): number {
    if (this.#answer !== null && !this.#openAnswer(this.#answer, end)) return 0;
    const { plainAddresses } = this.memory;
    let bytes = 0;
    while (this.#payloadArrived(end)) {
      const next = bytes + this.#payloadBytes;
      this.isFull = this.isSated || (bytes > 0 && next > room);
      if (this.isFull) break;
      if (!this.#openPart(plainAddresses.of(bytes), this.#payloadBytes)) break;
      this.opened(FRAMING_BYTES + this.#payloadBytes, this.#payloadBytes);
      this.#payloadBytes = -1;
      bytes = next;
    }
    return bytes;
  }

  #openAnswer(answer: ShadowsocksAnswer, end: number): boolean {
    if (end - this.at < answer.bytes) return false;
    const isOurs = answer.open(this.memory, this.at);
    this.#onContext(answer.context);
    this.at += answer.bytes;
    this.#answer = null;
    this.#context = answer.context;
    this.#count = answer.count;
    this.#payloadBytes = answer.payloadBytes;
    if (!isOurs) this.last = BROKEN;
    return isOurs;
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
    const { evp, wireAddresses } = this.memory;
    evp.beginCounted(this.#context, this.#count);
    if (!evp.openAt(this.#context, to, wireAddresses.of(this.at), size)) {
      this.last = BROKEN;
      return false;
    }
    this.#count++;
    this.at += size + TAG_BYTES;
    return true;
  }
}
