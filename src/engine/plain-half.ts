/** One direction between two kernel sockets: small reads are copied through the thread's buffer, bulk is spliced. */
import { BUFFER_BYTES, EAGAIN, EINTR, PIPE_BYTES } from "#platform/linux/relay-calls.ts";
import type { Pipe, RelayCalls } from "#platform/linux/relay-calls.ts";
import type { Pipes } from "./pipes.ts";

/** What the conversations of one thread share. */
export interface Io {
  readonly calls: RelayCalls;
  readonly pipes: Pipes;
  readonly counts: Float64Array;
  /** A direction wants to move so much; `place` is that of its count. */
  readonly ask: (place: number, bytes: number) => void;
  /** Bytes that were read and found no room, of all conversations. */
  strandedBytes: number;
}

/** Nothing can be done until the kernel says so. */
export const WAITS = 0;
/** Its share of this turn is used up. */
export const MORE = 1;
/** The end was passed on. */
export const OVER = 2;
export const FAILED = 3;
export type Outcome = typeof WAITS | typeof MORE | typeof OVER | typeof FAILED;

/** What a direction may move before the others have their turn. */
const TURN_BYTES = 4 * 1024 * 1024;
/** A read of so much makes a direction bulk. */
const BULK_BYTES = 64 * 1024;
/** With more than this stranded, reads are small: many slow receivers shall not fill the memory. */
const MOST_STRANDED_BYTES = 32 * 1024 * 1024;
const SMALL_READ_BYTES = 16 * 1024;

export class PlainHalf {
  readable = false;
  writable = true;
  /** The source has ended or failed: a short read does not mean that it is empty. */
  hungUp = false;
  /** The end was passed on. */
  over = false;
  readonly #from: number;
  readonly #to: number;
  readonly #count: number;
  #ended = false;
  #limited = false;
  #asking = false;
  /** While limited: granted, and not read yet. */
  #allowance = 0;
  #bulk = false;
  #pipe: Pipe | null = null;
  #pipedBytes = 0;
  /** Read, and not taken by the receiver yet. */
  #stranded: Uint8Array | null = null;

  /** `count` is the place of its sum in `Io.counts`. */
  constructor(from: number, to: number, count: number) {
    this.#from = from;
    this.#to = to;
    this.#count = count;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Every piece is asked for, or none. */
  limit(limited: boolean): void {
    this.#limited = limited;
    this.#asking = false;
    this.#allowance = 0;
  }

  /** What was asked for may move. */
  grant(bytes: number): void {
    this.#asking = false;
    this.#allowance += bytes;
  }

  run(io: Io): Outcome {
    if (this.over) return OVER;
    for (let moved = 0; moved < TURN_BYTES;) {
      if (!this.writable) return WAITS;
      const bytes = this.#step(io);
      if (bytes > 0) moved += bytes;
      else if (bytes === EAGAIN) return this.#wait(io, moved);
      else if (bytes !== EINTR) return bytes === 0 ? this.#end(io) : FAILED;
    }
    return MORE;
  }

  /** Moves one piece one step. EAGAIN: one of the sockets is not ready. 0: the end, and all is handed on. */
  #step(io: Io): number {
    if (this.#pipedBytes > 0) return this.#empty(io, this.#pipe as Pipe);
    if (this.#stranded !== null) return this.#retry(io, this.#stranded);
    if (this.#ended) return 0;
    if (!this.readable) return EAGAIN;
    if (this.#limited && this.#allowance <= 0) return this.#ask(io);
    if (this.#bulk) this.#pipe ??= io.pipes.take();
    return this.#pipe === null ? this.#copy(io) : this.#fill(io, this.#pipe);
  }

  /** For what is there, so that nothing is paid for that does not come. */
  #ask({ calls, ask }: Io): number {
    if (this.#asking) return EAGAIN;
    const bytes = calls.available(this.#from);
    if (bytes > 0) {
      this.#asking = true;
      ask(this.#count, bytes);
      return EAGAIN;
    }
    const next = calls.peek(this.#from);
    if (next > 0) return EINTR; // it came this very moment
    if (next === EAGAIN) this.readable = false;
    if (next === 0) this.#ended = true;
    return next;
  }

  #fill({ calls }: Io, pipe: Pipe): number {
    const bytes = calls.splice(this.#from, pipe.writeEnd, this.#cut(PIPE_BYTES));
    if (bytes > 0) {
      this.#allowance -= bytes;
      this.#pipedBytes = bytes;
      return EINTR; // nothing has been handed on yet
    }
    if (bytes === EAGAIN) this.readable = false;
    if (bytes === 0) this.#ended = true;
    return bytes;
  }

  #empty(io: Io, pipe: Pipe): number {
    const bytes = io.calls.splice(pipe.readEnd, this.#to, this.#pipedBytes);
    if (bytes > 0) this.#pipedBytes -= bytes;
    return this.#handedOn(io, bytes);
  }

  #copy(io: Io): number {
    const { calls } = io;
    const size = this.#cut(this.#readBytes(io));
    const bytes = calls.receive(this.#from, size);
    if (bytes < size && !this.hungUp) this.readable = false;
    if (bytes >= BULK_BYTES) this.#bulk = true;
    if (bytes === 0) this.#ended = true;
    if (bytes <= 0) return bytes;
    this.#allowance -= bytes;
    const sent = calls.send(this.#to, bytes);
    if (sent < bytes && (sent >= 0 || sent === EAGAIN)) this.#strand(io, Math.max(0, sent), bytes);
    return this.#handedOn(io, sent);
  }

  #cut(bytes: number): number {
    return this.#limited ? Math.min(bytes, this.#allowance) : bytes;
  }

  #readBytes({ strandedBytes }: Io): number {
    if (strandedBytes > MOST_STRANDED_BYTES) return SMALL_READ_BYTES;
    return this.#bulk ? BUFFER_BYTES : BULK_BYTES;
  }

  #strand(io: Io, from: number, to: number): void {
    this.#stranded = io.calls.buffer.slice(from, to);
    io.strandedBytes += to - from;
    this.writable = false; // a short write says the same as EAGAIN
  }

  #retry(io: Io, stranded: Uint8Array): number {
    io.calls.buffer.set(stranded);
    const sent = io.calls.send(this.#to, stranded.length);
    if (sent > 0) {
      io.strandedBytes -= sent;
      this.#stranded = sent < stranded.length ? stranded.slice(sent) : null;
      if (this.#stranded !== null) this.writable = false;
    }
    return this.#handedOn(io, sent);
  }

  #handedOn({ counts }: Io, bytes: number): number {
    if (bytes > 0) counts[this.#count] = (counts[this.#count] as number) + bytes;
    if (bytes === EAGAIN) this.writable = false;
    return bytes;
  }

  /** A pipe is kept only while there is something in it. */
  #wait(io: Io, moved: number): Outcome {
    if (this.#pipedBytes > 0 || !this.writable) return WAITS;
    this.#giveBack(io);
    if (moved < BULK_BYTES) this.#bulk = false;
    return WAITS;
  }

  #end(io: Io): Outcome {
    this.#giveBack(io);
    if (io.calls.endWriting(this.#to) < 0) return FAILED;
    this.over = true;
    return OVER;
  }

  #giveBack({ pipes }: Io): void {
    if (this.#pipe !== null) pipes.giveBack(this.#pipe);
    this.#pipe = null;
  }

  /** What was not handed on is thrown away. */
  drop(io: Io): void {
    if (this.#pipedBytes > 0 && this.#pipe !== null) io.pipes.discard(this.#pipe);
    else this.#giveBack(io);
    this.#pipe = null;
    if (this.#stranded !== null) io.strandedBytes -= this.#stranded.length;
    this.#stranded = null;
  }
}
