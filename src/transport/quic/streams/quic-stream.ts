/** One stream as a Duplex. A stream of one direction has ended, or was ended, in the other. */
import { Duplex } from "node:stream";
import { asError } from "#core/errors.ts";
import { COPIES, GIVES } from "#core/stream.ts";
import type { ReceivePart } from "./receive-part.ts";
import type { SendPart } from "./send-part.ts";
import { WaitingBytes } from "./waiting-bytes.ts";

/** What a stream asks of its connection. */
export interface StreamHost {
  /** How many unacknowledged bytes a stream may keep before its writer waits. */
  readonly sendBufferBytes: number;
  /** There is something to send on it. */
  onWritten(stream: QuicStream): void;
  /** Its reader has taken so many bytes; the peer may send more on the connection, and on the stream where `isLimitDue`. */
  onConsumed(stream: QuicStream, bytes: number, isLimitDue: boolean): void;
  /** No more is sent. */
  onReset(stream: QuicStream, code: number): void;
  /** No more is read. */
  onStopped(stream: QuicStream, code: number): void;
}

/** A piece at a time: further ones are joined while they wait. */
const HIGH_WATER_BYTES = 1;

/** What stands at the front of a stream and is not for its reader. */
export interface StreamHead {
  /** The next bytes; answers with what is behind the head, null: it is not whole yet. What it throws ends the stream. */
  take(bytes: Buffer): Buffer | null;
  /** Why the stream fails that ends before its head does. */
  endEarly(): Error;
}

export class QuicStream extends Duplex {
  readonly [COPIES] = true;
  readonly [GIVES] = true;
  readonly id: number;
  /** Null: the peer alone sends on it, or we do. */
  readonly send: SendPart | null;
  readonly receive: ReceivePart | null;
  /** In the list of those that have something to send. */
  isListed = false;
  /** In the list of those that have something for their reader. */
  hasArrived = false;
  /** Its place in the connection was given back. */
  isRetired = false;
  /** What a reset says to the peer. */
  abortCode: number;
  readonly #host: StreamHost;
  readonly #waiting = new WaitingBytes();
  /** Null: what comes is for the reader. */
  #head: StreamHead | null = null;
  #isWanted = false;
  #isStopped = false;
  #afterRoom: (() => void) | null = null;
  readonly #take = (bytes: Uint8Array): void => this.#keep(bytes);

  constructor(
    host: StreamHost,
    id: number,
    parts: {
      readonly send: SendPart | null;
      readonly receive: ReceivePart | null;
      readonly abortCode: number;
    },
  ) {
    super({ allowHalfOpen: true, readableHighWaterMark: HIGH_WATER_BYTES });
    this.id = id;
    this.#host = host;
    this.send = parts.send;
    this.receive = parts.receive;
    this.abortCode = parts.abortCode;
    if (parts.receive === null) {
      this.push(null);
      this.resume();
    }
    if (parts.send === null) this.end();
  }

  /** A STREAM frame, of memory that is lent; `handOver` gives it to the reader. Throws `QuicFault`. */
  takeFrame(offset: number, bytes: Uint8Array, isLast: boolean, count: (bytes: number) => void): void {
    if (this.receive !== null) count(this.receive.add(offset, bytes, isLast, this.#take));
  }

  #keep(bytes: Uint8Array): void {
    if (this.#isStopped || this.destroyed) this.#consume(bytes.length);
    else this.#waiting.push(bytes);
  }

  /** What comes first is given to this one, once something reads the stream. */
  readHead(head: StreamHead): void {
    this.#head = head;
  }

  /** Gives the reader what has come, as much as it takes: many packets at once. */
  handOver(): void {
    while (this.#isWanted) {
      const piece = this.#waiting.shift();
      if (piece === null) break;
      this.#consume(piece.length);
      const rest = this.#head === null ? piece : this.#headless(piece, this.#head);
      if (rest !== null && rest.length > 0) this.#isWanted = this.push(rest);
    }
    if (!this.#waiting.isEmpty || this.receive?.isComplete !== true || this.receive.isReset) return;
    if (this.#head === null) this.push(null);
    else this.destroy(this.#head.endEarly());
  }

  #headless(piece: Buffer, head: StreamHead): Buffer | null {
    try {
      const rest = head.take(piece);
      if (rest !== null) this.#head = null;
      return rest;
    } catch (error) {
      this.destroy(asError(error));
      return null;
    }
  }

  #consume(bytes: number): void {
    if (this.receive !== null) this.#host.onConsumed(this, bytes, this.receive.consume(bytes));
  }

  /** The peer has given its direction up. Throws `QuicFault`. */
  takeReset(finalSize: number, count: (bytes: number) => void): void {
    if (this.receive === null) return;
    const wasComplete = this.receive.isComplete;
    count(this.receive.reset(finalSize));
    if (wasComplete) return;
    this.#waiting.clear();
    this.#consume(this.receive.unconsumed);
    this.destroy(new Error("the peer reset the stream"));
  }

  /** The peer reads no more: what is written from now on is thrown away; what it has sent is still read. */
  takeStop(code: number): void {
    if (this.send === null || this.send.resetCode !== null || this.send.isDone) return;
    this.#host.onReset(this, code);
    this.onRoom();
    if (this.readableEnded) this.destroy();
    else if (!this.writableEnded) this.once("end", () => this.destroy());
  }

  /** The connection is over. */
  abandon(error: Error): void {
    this.isRetired = true;
    this.#waiting.clear();
    this.destroy(error);
  }

  /** Some of it was acknowledged. */
  onRoom(): void {
    const done = this.#afterRoom;
    if (done === null || !this.#hasRoom()) return;
    this.#afterRoom = null;
    done();
  }

  #hasRoom(): boolean {
    return this.send === null || this.send.buffered < this.#host.sendBufferBytes;
  }

  override _read(): void {
    this.#isWanted = true;
    this.handOver();
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.send?.write(new Uint8Array(bytes));
    this.#host.onWritten(this);
    // A writer that goes on whenever there is room would never leave this turn: what is thrown away makes room at once.
    if (this.send !== null && this.send.resetCode !== null) setImmediate(done);
    else if (this.#hasRoom()) done();
    else this.#afterRoom = done;
  }

  override _final(done: () => void): void {
    this.send?.end();
    this.#host.onWritten(this);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const { send, receive } = this;
    this.#isStopped = true;
    this.#afterRoom = null;
    if (!this.isRetired && send !== null && send.resetCode === null && !send.isDone)
      if (error !== null || !send.isEnded) this.#host.onReset(this, this.abortCode);
    if (!this.isRetired && receive !== null && !receive.isComplete)
      this.#host.onStopped(this, this.abortCode);
    for (let piece = this.#waiting.shift(); piece !== null; piece = this.#waiting.shift())
      this.#consume(piece.length);
    done(error);
  }
}
