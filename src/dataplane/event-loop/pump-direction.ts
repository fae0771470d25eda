import type { Duplex } from "node:stream";
import type { Direction, Meter } from "#core/meter.ts";
import { COPIES, GIVES } from "#core/stream.ts";
import { isPlainSocket } from "#core/handover.ts";

/** setTimeout takes no more. */
const MAX_HOLD_MS = 0x7fffffff;

/** No shared pool of the runtime hands out pieces as large as this that fill their memory. */
const LARGE_READ_BYTES = 32 * 1024;

export interface PumpDirectionEnv {
  readonly meter: Meter;
  readonly onBytes: (direction: Direction, bytes: number) => void;
  readonly onActive: () => void;
  /** Something was read, and is not under way any more. */
  readonly onMoved: () => void;
  /** `from` has ended; what was read may still be on its way. */
  readonly onEnded: () => void;
}

/**
 * One direction of a relayed connection. At any time it keeps at most one chunk of its own, besides what the two
 * streams buffer up to their high-water marks: at that bound reading stops, so the sender is slowed down.
 */
export class PumpDirection {
  readonly #from: Duplex;
  readonly #to: Duplex;
  readonly #direction: Direction;
  readonly #env: PumpDirectionEnv;
  /** Read, but not yet charged for. */
  #rest: Uint8Array | null = null;
  /** Charged for, and held back until the timer fires. */
  #held: Uint8Array | null = null;
  #timer: NodeJS.Timeout | undefined;
  /**
   * Between kernel sockets, or to a stream that copies, no other listener sees the chunk, so its buffer can be reused.
   */
  readonly #ownsReads: boolean;
  readonly #copies: boolean;
  /** The memory of a chunk is that of no other, however little of it the chunk fills. */
  readonly #isGiven: boolean;
  #blocked = false;
  #ended = false;
  #closed = false;
  #stopped = false;
  readonly #take = (chunk: Uint8Array): void => this.#onData(chunk);
  readonly #end = (): void => this.#onEnd();
  readonly #drained = (): void => this.#onDrain();

  constructor(direction: Direction, from: Duplex, to: Duplex, env: PumpDirectionEnv) {
    this.#direction = direction;
    this.#from = from;
    this.#to = to;
    this.#env = env;
    this.#copies = COPIES in to;
    this.#isGiven = GIVES in from;
    this.#ownsReads = (isPlainSocket(from) || this.#isGiven) && (isPlainSocket(to) || this.#copies);
  }

  start(): void {
    this.#from.on("data", this.#take);
    this.#from.once("end", this.#end);
    this.#to.on("drain", this.#drained);
    if (this.#from.readableEnded) this.#onEnd();
    else this.#from.resume();
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** `to` has had everything, and the end. */
  get delivered(): boolean {
    return this.#closed || this.#to.writableFinished;
  }

  /** Everything that was read has been taken by the kernel, and there may be more to read. */
  get isClear(): boolean {
    if (this.#ended || this.#rest !== null || this.#held !== null) return false;
    return this.#from.readableLength === 0 && this.#to.writableLength === 0 && !this.#to.writableEnded;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#rest = this.#held = null;
  }

  /** The receiver had ended and has closed: further bytes are read and thrown away. */
  abandon(): void {
    this.stop();
    this.#ended = this.#closed = true;
    this.#from.resume();
  }

  /** To be called once it has stopped, when a backend takes one of the streams over. */
  leave(): void {
    this.#from.off("data", this.#take).off("end", this.#end);
    this.#to.off("drain", this.#drained);
  }

  #onData(chunk: Uint8Array): void {
    if (this.#stopped) return;
    this.#env.onActive();
    const { meter } = this.#env;
    if (chunk.length <= meter.pieceBytes) this.#send(chunk);
    else {
      this.#rest = chunk;
      this.#resume();
    }
    if (this.#blocked || this.#held !== null) this.#from.pause();
    else this.#env.onMoved();
  }

  /** Cuts and hands on what was read, until something makes it wait or nothing is left. */
  #resume(): void {
    const { meter } = this.#env;
    while (this.#rest !== null && !this.#blocked && this.#held === null && !this.#stopped) {
      const all: Uint8Array = this.#rest;
      const size = Math.min(all.length, Math.max(1, meter.pieceBytes));
      const piece = all.subarray(0, size);
      this.#rest = size < all.length ? all.subarray(size) : null;
      this.#send(piece);
    }
  }

  #send(piece: Uint8Array): void {
    const { meter } = this.#env;
    const holdMs =
      meter.reserve(this.#direction, piece.length) || meter.trySend(this.#direction, piece.length);
    if (holdMs > 0) this.#hold(piece, holdMs);
    else this.#write(piece);
  }

  #hold(piece: Uint8Array, holdMs: number): void {
    this.#held = piece;
    this.#timer = setTimeout(() => this.#onTime(), Math.min(holdMs, MAX_HOLD_MS));
  }

  #onTime(): void {
    const held = this.#held;
    if (held === null || this.#stopped) return;
    const holdMs = this.#env.meter.trySend(this.#direction, held.length);
    if (holdMs > 0) return this.#hold(held, holdMs);
    this.#held = null;
    this.#env.onActive();
    this.#write(held);
    this.#proceed();
  }

  #write(piece: Uint8Array): void {
    this.#env.onBytes(this.#direction, piece.length);
    // A kernel that took everything at once leaves nothing to wait for, although write() says so for a large chunk.
    const more = this.#to.write(piece);
    this.#env.meter.sent?.(this.#direction);
    const left = this.#to.writableLength;
    if (left === 0 || (this.#copies && left === piece.length)) this.#release(piece);
    if (left > 0 && !more) this.#blocked = true;
  }

  /**
   * Gives the memory of a large read back at once, now that the kernel has its bytes. Left to the collector, 64 MiB of
   * such reads make it mark the whole heap: ten times a second in bulk, a third of the CPU time of the program.
   */
  #release(piece: Uint8Array): void {
    const { buffer, byteLength } = piece;
    if (!this.#ownsReads || this.#rest !== null || buffer.byteLength < LARGE_READ_BYTES) return;
    if (byteLength !== buffer.byteLength && !this.#isGiven) return;
    if (buffer instanceof ArrayBuffer) buffer.transfer(0);
  }

  #onDrain(): void {
    if (!this.#blocked || this.#stopped) return;
    this.#blocked = false;
    this.#env.onActive();
    this.#proceed();
  }

  #proceed(): void {
    this.#resume();
    if (this.#rest !== null || this.#held !== null || this.#stopped) return;
    if (this.#ended) this.#endTo();
    else if (!this.#blocked) {
      this.#from.resume();
      this.#env.onMoved();
    }
  }

  #onEnd(): void {
    if (this.#ended || this.#stopped) return;
    this.#ended = true;
    this.#env.onEnded();
    if (this.#rest === null && this.#held === null) this.#endTo();
  }

  /** Once its own peer has ended, to close a socket says what its end would say, with less work for the system. */
  #endTo(): void {
    const to = this.#to;
    this.#closed = isPlainSocket(to) && to.readableEnded && to.writableLength === 0 && !to.writableEnded;
    if (this.#closed) to.destroy();
    else to.end();
  }
}
