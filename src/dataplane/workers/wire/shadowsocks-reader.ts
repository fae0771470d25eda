import { EAGAIN, EINTR, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { LENGTH_BYTES, type ShadowsocksMemory, TAG_BYTES } from "./shadowsocks-memory.ts";
import { byteAt } from "#lib/at.ts";

/** The errno EPROTO: the peer broke the rules. */
export const BROKEN = -71;

/** What is left of a chunk is kept in pieces of at least this. */
const REST_BYTES = 4096;

export interface ShadowsocksDirection {
  /** Of the cipher's context, which is its owner's. */
  readonly context: bigint;
  /** Messages so far. */
  readonly count: number;
  /** Of plain bytes in a chunk, at most. */
  readonly chunkBytes: number;
}

/**
 * The direction from the peer: chunks that are whole are opened, what follows them is kept. A chunk that does not
 * authenticate ends it, and so does an end within one; what came before is given first.
 */
export class ShadowsocksReader {
  readonly #memory: ShadowsocksMemory;
  readonly #fd: number;
  readonly #context: bigint;
  readonly #chunkBytes: number;
  #count: number;
  /** Of the payload that comes next; -1: a length comes next. */
  #payloadBytes: number;
  /** Wire bytes from here on are not opened yet. */
  #at = 0;
  #rest: Uint8Array | null;
  #remainderBytes: number;
  /** Opened, and more than was asked for: one chunk at most. */
  #buffered: Uint8Array | null = null;
  #isDry = false;
  /** There may be complete chunks in the buffered bytes. */
  #isFull = false;
  #ended = false;
  /** The result of all further reads; null: reading continues. */
  #last: number | null = null;

  /** `rest` was read from the socket already; `payloadBytes` of a length that was opened already, or -1. */
  constructor(
    memory: ShadowsocksMemory,
    fd: number,
    { context, count, chunkBytes }: ShadowsocksDirection,
    payloadBytes: number,
    rest: Uint8Array | null,
  ) {
    this.#memory = memory;
    this.#fd = fd;
    this.#context = context;
    this.#count = count;
    this.#chunkBytes = chunkBytes;
    this.#payloadBytes = payloadBytes;
    this.#rest = rest;
    this.#remainderBytes = rest?.length ?? 0;
  }

  /** Nothing more can be had before the socket has something. */
  get isDry(): boolean {
    return this.#isDry && !this.#isFull && !this.#ended && this.#buffered === null && this.#last === null;
  }

  /** The socket may have something. */
  wake(): void {
    this.#isDry = false;
  }

  /** Up to `size` plain bytes to the start of the thread's buffer. 0: the end. */
  read(calls: RelayCalls, size: number): number {
    return this.#buffered === null ? this.#fetch(calls, size) : this.#deliver(this.#buffered, size);
  }

  /** Plain bytes that are there for sure, and those on the socket, more or less. */
  available(calls: RelayCalls): number {
    const bytes = this.#buffered === null ? this.#fetch(calls, 0) : 0;
    return this.#buffered === null ? bytes : this.#buffered.length + Math.max(0, calls.available(this.#fd));
  }

  #deliver(buffered: Uint8Array, size: number): number {
    const bytes = Math.min(size, buffered.length);
    this.#memory.plain.set(buffered.subarray(0, bytes));
    this.#buffered = bytes < buffered.length ? buffered.subarray(bytes) : null;
    return bytes;
  }

  /** The plain bytes of a chunk that are beyond `size` are held. */
  #fetch(calls: RelayCalls, size: number): number {
    if (this.#last !== null) return this.#last;
    let end = this.#takeRemainder();
    let bytes = this.#open(end, size);
    let got = EINTR;
    if (bytes === 0 && this.#buffered === null && this.#last === null && !this.#ended) {
      got = this.#receive(calls, end, size);
      if (got > 0) bytes = this.#open((end += got), size);
      else if (got !== 0 && got !== EAGAIN && got !== EINTR) this.#last = got;
    }
    this.#keepRemainder(end);
    if (bytes > 0 || this.#buffered !== null) return bytes;
    if (this.#ended) this.#last ??= this.#remainderBytes > 0 || this.#payloadBytes >= 0 ? BROKEN : 0;
    return this.#last ?? (got === EAGAIN ? EAGAIN : EINTR);
  }

  #receive(calls: RelayCalls, end: number, size: number): number {
    const { wire, wireAt } = this.#memory;
    const wanted = Math.max(size, this.#payloadBytes, LENGTH_BYTES) + TAG_BYTES;
    const room = Math.min(wanted, wire.length - end);
    const got = calls.receiveAt(this.#fd, wireAt + BigInt(end), room);
    this.#isDry = got !== EINTR && got < room;
    if (got === 0) this.#ended = true;
    return got;
  }

  /** Opens what is whole before `end`, as far as there is room for it in the thread's buffer. */
  #open(end: number, room: number): number {
    const { plain, plainAt } = this.#memory;
    this.#isFull = false;
    let bytes = 0;
    while (this.#payloadArrived(end)) {
      const next = bytes + this.#payloadBytes;
      if (bytes > 0 && next > room) {
        this.#isFull = true;
        break;
      }
      if (!this.#openPart(plainAt + BigInt(bytes), this.#payloadBytes)) break;
      this.#payloadBytes = -1;
      bytes = next;
    }
    if (bytes > room) this.#buffered = plain.slice(room, bytes);
    return Math.min(bytes, room);
  }

  /** Opens the length where it is due. Is all of the payload there? */
  #payloadArrived(end: number): boolean {
    if (this.#payloadBytes < 0) {
      const { length, lengthAt } = this.#memory;
      if (end - this.#at < LENGTH_BYTES + TAG_BYTES || !this.#openPart(lengthAt, LENGTH_BYTES)) return false;
      const bytes = (byteAt(length, 0) << 8) | byteAt(length, 1);
      if (bytes > this.#chunkBytes) {
        this.#last = BROKEN;
        return false;
      }
      this.#payloadBytes = bytes;
    }
    return this.#last === null && end - this.#at >= this.#payloadBytes + TAG_BYTES;
  }

  #openPart(to: bigint, size: number): boolean {
    const { evp, wireAt } = this.#memory;
    evp.beginCounted(this.#context, this.#count);
    if (!evp.openAt(this.#context, to, wireAt + BigInt(this.#at), size)) {
      this.#last = BROKEN;
      return false;
    }
    this.#count++;
    this.#at += size + TAG_BYTES;
    return true;
  }

  #takeRemainder(): number {
    const { wire } = this.#memory;
    this.#at = 0;
    if (this.#rest !== null) wire.set(this.#rest.subarray(0, this.#remainderBytes));
    return this.#remainderBytes;
  }

  #keepRemainder(end: number): void {
    const bytes = end - this.#at;
    this.#remainderBytes = bytes;
    if (bytes === 0) this.#rest = null;
    else {
      if (this.#rest === null || this.#rest.length < bytes)
        this.#rest = new Uint8Array(Math.max(bytes, REST_BYTES));
      this.#rest.set(this.#memory.wire.subarray(this.#at, end));
    }
  }
}
