import { Duplex } from "node:stream";
import { ProtocolError, errnoOf, asError } from "#core/errors.ts";
import { LOWER_STREAM, LAYERS, LOWER_DETACHED } from "#core/handover.ts";
import type { Layer } from "#core/wire-state.ts";
import { abortStream } from "#core/stream.ts";
import { onEnd } from "./late-end.ts";
import { discardInput } from "#net/listen/read-handshake.ts";

/** Turns plain bytes into wire bytes and back; one object serves one stream. */
export interface StreamCodec {
  /** Wire bytes for plain ones. The first call also brings the opening of the stream, even when `plain` is empty. */
  seal(plain: Buffer): Buffer;
  /** Wire bytes that say "no more follows", with the opening where it was not sent yet; null: the wire's end says it. */
  sealEnd(): Buffer | null;
  /** Hands plain pieces to `emit` as far as `wire` completes them; null: the peer said its end. Throws `ProtocolError`. */
  open(wire: Buffer, emit: (plain: Buffer | null) => void): void;
  /** The wire ended. Throws `ProtocolError` where it must not end. */
  openEnd(): void;
  /** From now on plain and wire bytes are the same, both ways, and nothing is kept back. */
  readonly bare?: boolean;
  /** Apart from this they are the same, and nothing is kept back; null: they are not. */
  readonly layer?: Layer | null;
  /** The stream is over: frees what no garbage collection sees. Called once; later calls of other methods may throw. */
  close?(): void;
}

export interface CodecStreamOptions {
  /** Send the opening alone when nothing was written for so long: the far side may be the one that speaks first. */
  readonly openAfterMs?: number;
  /**
   * The end of what is written is kept back until nothing has been read for so long: peers of this protocol take it for
   * the end of both directions.
   */
  readonly endAfterSilenceMs?: number;
  /** A faulty wire is read on and thrown away for so long, in place of a reset that would show where the fault lay. */
  readonly discardOnFaultMs?: number;
}

const EMPTY = Buffer.alloc(0);

/**
 * How long the wire is read on behind both ends: closed with something unread it would be reset, and what was written last
 * would be lost on its way.
 */
const TRAILING_MS = 60_000;

/** A plain Duplex over a wire Duplex, which it owns. Keeps half-close; back-pressure passes through both ways. */
export class CodecStream extends Duplex {
  readonly #wire: Duplex;
  readonly #codec: StreamCodec;
  readonly #options: CodecStreamOptions;
  readonly #openTimer: NodeJS.Timeout | null;
  #opened = false;
  #plainEnded = false;
  #handedOver = false;
  /** The peer has said its end and closed: what is still written is thrown away until that end has been read. */
  #isRefused = false;
  /** The peer has ended and only our own late end is left to be sent: it may have closed by then. */
  #isMoot = false;
  #lateEnd: { readonly timer: NodeJS.Timeout; readonly send: () => void } | null = null;
  #afterDrain: ((error?: Error | null) => void) | null = null;
  readonly #emit = (plain: Buffer | null): void => this.#take(plain);

  constructor(wire: Duplex, codec: StreamCodec, options: CodecStreamOptions = {}) {
    super({ allowHalfOpen: true });
    this.#wire = wire;
    this.#codec = codec;
    this.#options = options;
    this.#openTimer =
      options.openAfterMs === undefined ? null : setTimeout(() => this.#open(), options.openAfterMs);
    wire.pause(); // until there is demand
    wire.on("data", (bytes: Buffer) => {
      this.#lateEnd?.timer.refresh();
      this.#guard(() => codec.open(bytes, this.#emit));
    });
    onEnd(wire, () => this.#guard(() => this.#wireEnded()));
    wire.on("error", (error) => {
      if (!this.#isMoot) this.destroy(error);
    });
    wire.on("close", () => this.#wireClosed());
    wire.on("drain", () => this.#drained());
    // The wire may have closed while an earlier handshake waited for something else: no event reports it any more.
    if (wire.destroyed) process.nextTick(() => this.#wireClosed());
  }

  /** The stream below, for parts that need the real transport of the connection. */
  get wire(): Duplex {
    return this.#wire;
  }

  [LOWER_STREAM](): Duplex | null {
    const busy = this.destroyed || this.#plainEnded || this.writableEnded || this.#afterDrain !== null;
    return busy || (this.#codec.bare !== true && (this.#codec.layer ?? null) === null) ? null : this.#wire;
  }

  [LAYERS](): readonly Layer[] {
    const layer = this.#codec.layer ?? null;
    return layer === null ? [] : [layer];
  }

  [LOWER_DETACHED](): void {
    this.#handedOver = true;
  }

  override _read(): void {
    this.#wire.resume();
  }

  override _write(plain: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#markOpened();
    // The runtime ends an HTTP/2 stream that the peer has reset, some time before it closes.
    if (this.#isRefused || this.#wire.writableEnded) done();
    else if (this.#wire.write(this.#codec.seal(plain))) done();
    else this.#afterDrain = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#markOpened();
    const silenceMs = this.#options.endAfterSilenceMs;
    if (silenceMs === undefined || this.#plainEnded) return this.#sendEnd(done);
    const onSilence = () => {
      if (this.readableLength > 0) this.#lateEnd?.timer.refresh(); // the reader pauses, not the peer
      else this.#endNow();
    };
    this.#lateEnd = { timer: setTimeout(onSilence, silenceMs), send: () => this.#sendEnd(done) };
  }

  /** Sends an end that is kept back. */
  #endNow(): void {
    const late = this.#lateEnd;
    if (late === null) return;
    this.#lateEnd = null;
    this.#isMoot = this.#plainEnded;
    clearTimeout(late.timer);
    late.send();
  }

  #sendEnd(done: (error?: Error | null) => void): void {
    if (this.#isRefused) return done();
    const last = this.#codec.sealEnd();
    // Finished means handed to the kernel: a destroy that follows must not cut off the tail.
    const finished = (error?: Error | null) =>
      done(error && (this.#isMoot || this.#closedInOrder(error)) ? null : error);
    if (last === null) this.#wire.end(finished);
    else this.#wire.end(last, finished);
  }

  /** An HTTP/2 stream whose both ends are reached is gone before it calls back: nothing was lost. */
  #closedInOrder(error: Error): boolean {
    const code = errnoOf(error);
    return code === "ERR_STREAM_DESTROYED" && this.#wire.errored === null && this.#wire.readableEnded;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#markOpened();
    clearTimeout(this.#lateEnd?.timer);
    this.#codec.close?.();
    const limitMs = this.#options.discardOnFaultMs;
    const hasEnded = this.#plainEnded && this.writableFinished && !this.#handedOver;
    if (error instanceof ProtocolError && limitMs !== undefined) discardInput(this.#wire, limitMs);
    else if (error !== null) abortStream(this.#wire, error);
    else if (hasEnded) discardInput(this.#wire, TRAILING_MS);
    else this.#wire.destroy();
    done(error);
  }

  #open(): void {
    if (this.#opened || this.destroyed) return;
    this.#markOpened();
    this.#wire.write(this.#codec.seal(EMPTY));
  }

  #markOpened(): void {
    this.#opened = true;
    if (this.#openTimer !== null) clearTimeout(this.#openTimer);
  }

  #guard(work: () => void): void {
    if (this.destroyed) return;
    try {
      work();
    } catch (error) {
      this.destroy(asError(error));
    }
  }

  #take(plain: Buffer | null): void {
    if (this.#plainEnded) return; // behind the peer's own end mark
    if (plain === null) this.#plainEnded = true;
    if (plain === null) this.#endNow();
    if (this.push(plain) || plain === null) return;
    // Also without demand: the runtime resumes a stream from which a 'readable' listener was taken.
    this.#wire.pause();
  }

  #wireEnded(): void {
    if (!this.#plainEnded) this.#codec.openEnd();
    this.#take(null);
  }

  #wireClosed(): void {
    if (this.destroyed || this.#handedOver || this.#isMoot) return;
    if (this.#plainEnded && this.writableFinished) return;
    if (!this.#plainEnded || this.readableEnded)
      return void this.destroy(new Error("the connection below closed before its end"));
    this.#isRefused = true;
    this.once("end", () => this.destroy());
    this.#drained();
    this.#endNow();
  }

  #drained(): void {
    const done = this.#afterDrain;
    this.#afterDrain = null;
    done?.();
  }
}
