import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import type { WireIo } from "./wire.ts";

/** The errno EPROTO: the peer broke the rules. */
export const BROKEN = -71;

/** What is left of a message is kept in pieces of at least this. */
const REST_BYTES = 4096;
/** Of the longest message; what many short ones took is given back before the last of them. */
const MOST_REST_BYTES = 66 * 1024;
/** Where messages are shorter, a part of one is kept at no cost. */
const LONG_BYTES = 4096;
/** What one read opens at most: a peer decides how little is in each message. */
const MOST_MESSAGES = 64;

/**
 * The direction from the peer, in sealed messages: those that are whole are opened, what follows them is kept. One that is
 * not authentic ends it, and so does an end within one; what came before is given first.
 */
export abstract class SealedReader {
  protected readonly memory: CipherMemory;
  readonly #below: SealedBelow;
  /** Wire bytes from here on are not opened yet. */
  protected at = 0;
  /** There may be complete messages in the buffered bytes. */
  protected isFull = false;
  /** The result of all further reads; null: reading continues. */
  protected last: number | null = null;
  #rest: Uint8Array | null;
  #remainderBytes: number;
  /** Opened, and more than was asked for: one message at most. */
  #buffered: Uint8Array | null = null;
  #isDry = false;
  #ended = false;
  /** The longest message of those that were opened last: all of it, and its plain bytes. */
  #longestBytes = 0;
  #longestPlain = 0;
  /** Those belong to an earlier turn. */
  #isStale = false;
  /** Messages that the present read may still open. */
  #messagesLeft = 0;

  /** `rest` was read from below already, and fits into the memory for the wire. */
  constructor(memory: CipherMemory, below: SealedBelow, rest: Uint8Array | null) {
    this.memory = memory;
    this.#below = below;
    this.#rest = rest;
    this.#remainderBytes = rest?.length ?? 0;
  }

  /**
   * Opens what is whole before `end` to the start of the thread's buffer; answers with how many plain bytes that made.
   * More than `room` only where the first message is longer.
   */
  protected abstract open(io: WireIo, end: number, room: number): number;
  /** From `at` to the end of the next message, which is not whole before `end`. 0: its length has not come. */
  protected abstract due(end: number): number;
  /** Within a message, though every byte that came was opened. */
  protected abstract get isCut(): boolean;

  /** Nothing comes any more, whatever lies below. */
  get hasEnded(): boolean {
    return this.last !== null;
  }

  /** Nothing more can be had before there is something below. */
  get isDry(): boolean {
    return this.#isDry && !this.isFull && !this.#ended && this.#buffered === null && this.last === null;
  }

  /** There may be something below. */
  wake(): void {
    this.#isDry = false;
  }

  /** For those who go on with it: payload that was opened and not read, and bytes that were not opened. */
  get left(): { readonly opened: Uint8Array | null; readonly sealed: Uint8Array } {
    const sealed = this.#rest?.slice(0, this.#remainderBytes) ?? new Uint8Array(0);
    return { opened: this.#buffered, sealed };
  }

  /** Up to `size` plain bytes to the start of the thread's buffer. 0: the end. */
  read(io: WireIo, size: number): number {
    return this.#buffered === null ? this.#fetch(io, size) : this.#deliver(this.#buffered, size);
  }

  /** Plain bytes that are there for sure, and those below, more or less. */
  available(io: WireIo): number {
    const bytes = this.#buffered === null ? this.#fetch(io, 0) : 0;
    return this.#buffered === null ? bytes : this.#buffered.length + Math.max(0, this.#below.available(io));
  }

  #deliver(buffered: Uint8Array, size: number): number {
    const bytes = Math.min(size, buffered.length);
    this.memory.plain.set(buffered.subarray(0, bytes));
    this.#buffered = bytes < buffered.length ? buffered.subarray(bytes) : null;
    return bytes;
  }

  /** The plain bytes of a message that are beyond `size` are held. */
  #fetch(io: WireIo, size: number): number {
    if (this.last !== null) return this.last;
    let end = this.#takeRemainder();
    let bytes = this.#openAll(io, end, size);
    let got = EINTR;
    if (bytes === 0 && this.#buffered === null && this.last === null && !this.#ended && !this.isFull) {
      got = this.#receive(io, end, size);
      if (got > 0) bytes = this.#openAll(io, (end += got), size);
      else if (got !== 0 && got !== EAGAIN && got !== EINTR) this.last = got;
    }
    this.#keepRemainder(end);
    if (bytes > 0 || this.#buffered !== null) return bytes;
    if (this.#ended && !this.isFull) this.last ??= this.#remainderBytes > 0 || this.isCut ? BROKEN : 0;
    return this.last ?? (got === EAGAIN ? EAGAIN : EINTR);
  }

  /** One was opened: of so many bytes, framing and tags included. */
  protected opened(bytes: number, plainBytes: number): void {
    this.#messagesLeft--;
    if (bytes <= this.#longestBytes && !this.#isStale) return;
    this.#isStale = false;
    this.#longestBytes = bytes;
    this.#longestPlain = plainBytes;
  }

  /** What follows is for the next read. */
  protected get isSated(): boolean {
    return this.#messagesLeft <= 0;
  }

  /** The message that was opened last takes as long as so many. */
  protected weigh(messages: number): void {
    this.#messagesLeft -= messages;
  }

  /**
   * Enough for `size` plain bytes, and up to the end of a message where they are as long as before: what is left of one is
   * copied twice.
   */
  #wanted(size: number, due: number): number {
    if (this.#longestPlain < LONG_BYTES) return Math.max(size + TAG_BYTES, due, LONG_BYTES);
    const more = Math.max(0, Math.floor(size / this.#longestPlain) - 1);
    return (due || this.#longestBytes) + more * this.#longestBytes;
  }

  #receive(io: WireIo, end: number, size: number): number {
    const wanted = this.#wanted(size, this.due(end)) - (end - this.at);
    const room = Math.min(wanted, this.memory.wire.length - end);
    const got = this.#below.receive(io, end, room);
    this.#isDry = this.#below.isDry;
    if (got === 0) this.#ended = true;
    return got;
  }

  #openAll(io: WireIo, end: number, room: number): number {
    this.isFull = false;
    this.#isStale = true;
    this.#messagesLeft = MOST_MESSAGES;
    const bytes = this.open(io, end, room);
    if (bytes > room) this.#buffered = this.memory.plain.slice(room, bytes);
    return Math.min(bytes, room);
  }

  #takeRemainder(): number {
    this.at = 0;
    if (this.#rest !== null) this.memory.wire.set(this.#rest.subarray(0, this.#remainderBytes));
    return this.#remainderBytes;
  }

  #keepRemainder(end: number): void {
    const bytes = end - this.at;
    this.#remainderBytes = bytes;
    if (bytes === 0) this.#rest = null;
    else {
      const isTooLong = (this.#rest?.length ?? 0) > MOST_REST_BYTES && bytes <= MOST_REST_BYTES;
      if (this.#rest === null || this.#rest.length < bytes || isTooLong)
        this.#rest = new Uint8Array(Math.max(bytes, REST_BYTES));
      this.#rest.set(this.memory.wire.subarray(this.at, end));
    }
  }
}
