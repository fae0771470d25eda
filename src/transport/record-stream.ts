/** One side of a connection in protected records as a stream over another stream. */
import { Socket } from "node:net";
import { Duplex } from "node:stream";
import { asError, AuthError } from "#core/errors.ts";
import { DETACHABLE, detachable, type Detachable, isPlainSocket, sealedOver } from "#core/handover.ts";
import type { DetachedState, WireRemainder } from "#core/wire-state.ts";
import type { Bypass, RawSink } from "#core/tls-bypass.ts";
import { onEnd } from "#net/stream/late-end.ts";
import type { RecordConnection } from "./record-connection.ts";

/** What a worker takes along; more is not read ahead as a rule. */
const MOST_UNREAD_BYTES = 256 * 1024;

type Done = (error?: Error | null) => void;

/**
 * Emits `secure` once the peer is known. Half-close is kept. Records are opened one by one, and only as the reader
 * takes their payload, so the protection can be left behind from within a `data` event, each direction by itself.
 */
export class RecordStream extends Duplex implements Bypass {
  /** The peer's address, for error texts and logs. */
  readonly remoteAddress: string | undefined;
  #below: Duplex;
  readonly #connection: RecordConnection;
  #wanted = false;
  #soon = false;
  #held = false;
  #belowEnded = false;
  #ended = false;
  #sink: RawSink | null = null;
  #rawWrite = false;
  #afterDrain: Done | null = null;
  /** A worker has the socket and the keys. */
  #isDetached = false;

  /** Owns both from here; `begin` says what this side says first. */
  constructor(below: Duplex, connection: RecordConnection) {
    super({ allowHalfOpen: true });
    this.#below = below;
    this.#connection = connection;
    this.remoteAddress = below instanceof Socket ? below.remoteAddress : undefined;
    this.#watch(below);
    // It may have closed while a handshake waited for something else: no event reports it any more.
    if (below.destroyed) process.nextTick(() => this.#belowClosed());
  }

  #watch(below: Duplex): void {
    below.on("data", (bytes: Buffer) => this.#arrived(bytes));
    onEnd(below, () => {
      this.#belowEnded = true;
      this.#turn();
    });
    below.on("error", (error) => this.destroy(error));
    // Where a worker has had the socket, the one before may close as late as this.
    below.on("close", () => {
      if (below === this.#below) this.#belowClosed();
    });
    below.on("drain", () => this.#drained());
  }

  /** While the protection lasts. */
  [DETACHABLE](): Detachable | null {
    const isBusy = this.#afterDrain !== null || this.readableLength + this.writableLength > 0;
    const isOver = this.destroyed || this.#isDetached || this.#ended || this.writableEnded;
    const hasLeft = this.#sink !== null || this.#rawWrite || this.#held;
    const { canDepart, unreadBytes } = this.#connection;
    if (isBusy || isOver || hasLeft || !canDepart) return null;
    if (unreadBytes + this.#below.readableLength > MOST_UNREAD_BYTES) return null;
    return isPlainSocket(this.#below) ? this.#withSocket() : this.#overWire();
  }

  #withSocket(): Detachable | null {
    const below = detachable(this.#below);
    if (below === null) return null;
    const side = { kind: this.#connection.wireKind, socket: below.socket, detach: () => this.#depart() };
    if (this.#connection.comeBack === undefined) return side;
    return { ...side, reattach: (fd, remainder) => this.#takeBack(fd, remainder) };
  }

  /** Of a wire that has left the socket open. */
  #takeBack(fd: number, remainder: WireRemainder | null): void {
    const records = remainder?.records ?? null;
    if (fd < 0 || remainder === null || records === null) return;
    const below = new Socket({ fd, allowHalfOpen: true });
    if (this.destroyed || remainder.failed) {
      below.destroy();
      return void this.destroy(cutOff());
    }
    this.#isDetached = false;
    this.#below = below;
    this.#connection.comeBack?.(records);
    if (remainder.unsent !== null) below.write(remainder.unsent);
    this.#watch(below);
    this.#turnSoon();
  }

  /** TLS of our own is left to workers over a socket alone. */
  #overWire(): Detachable | null {
    const { wireKind } = this.#connection;
    if (wireKind === "records" || this.#below.readableLength + this.#below.writableLength > 0) return null;
    const below = detachable(this.#below);
    return below === null ? null : sealedOver(below, wireKind, () => this.#depart());
  }

  #depart(): DetachedState {
    this.#isDetached = true;
    while (this.#below.readableLength > 0) this.#below.read(); // `data` has the connection take it
    return this.#connection.depart();
  }

  begin(): void {
    this.#connection.start();
    this.#flush();
  }

  #arrived(bytes: Buffer): void {
    if (this.#sink !== null && !this.#held && this.#connection.unreadBytes === 0)
      return this.#sink.data(bytes);
    this.#connection.feed(bytes);
    this.#turn();
  }

  /** Hands on what can be read, and lets more come only when that is gone. */
  #turn(): void {
    if (this.destroyed || this.#isDetached) return;
    if (this.#sink === null) this.#readRecords();
    if (this.#sink !== null) this.#readRaw(this.#sink);
    if (this.destroyed || this.#isDetached) return; // from within a `data` event
    const waits = this.#held || (this.#sink === null && this.#connection.isSecure && !this.#wanted);
    if (waits && !this.#ended) this.#below.pause();
    else this.#below.resume();
  }

  #readRecords(): void {
    try {
      while (this.#mayRead && this.#readRecord());
    } catch (error) {
      this.#flush();
      this.destroy(reasonOf(error));
    }
  }

  get #mayRead(): boolean {
    const hasLeft = this.#sink !== null || this.#isDetached;
    return !hasLeft && !this.#held && !this.#ended && !this.destroyed;
  }

  /** False: nothing more is to be had now. */
  #readRecord(): boolean {
    const wasSecure = this.#connection.isSecure;
    if (wasSecure && !this.#wanted) return false;
    const payload = this.#connection.read();
    this.#flush();
    if (!wasSecure && this.#connection.isSecure) this.emit("secure");
    if (payload === null) {
      this.#endIfOver();
      return false;
    }
    this.#wanted = this.push(payload);
    return true;
  }

  #endIfOver(): void {
    if (this.#connection.hasEnded) {
      this.#ended = true;
      this.push(null);
    } else if (this.#belowEnded) this.#endWithoutWord();
  }

  /** Many peers end the connection below without close_notify; as libssl is told here, that is an end where nothing is cut. */
  #endWithoutWord(): void {
    if (!this.#connection.isSecure)
      return void this.destroy(new Error("the peer closed the connection during the handshake"));
    if (this.#connection.unreadBytes > 0) return void this.destroy(cutOff());
    this.#ended = true;
    this.push(null);
  }

  #readRaw(sink: RawSink): void {
    if (this.#held || this.#ended) return;
    const behind = this.#connection.takeUnread();
    if (behind.length > 0) sink.data(behind);
    if (!this.#belowEnded || this.#held) return;
    this.#ended = true;
    sink.end();
  }

  #flush(): void {
    const output = this.#connection.takeOutput();
    if (output !== null && !this.#rawWrite && this.#below.writable) this.#below.write(output);
  }

  #belowClosed(): void {
    if (this.destroyed || this.#isDetached || (this.#sink !== null && this.#rawWrite)) return;
    const isOver = (this.#ended || this.#below.readableEnded) && this.writableFinished;
    if (!isOver) this.destroy(cutOff()); // else what came is still to be read, and the stream is over behind it
  }

  override _read(): void {
    this.#wanted = true;
    this.#turnSoon();
  }

  /** Not from within `_read`: what is pushed there is not delivered at once. */
  #turnSoon(): void {
    if (this.#soon) return;
    this.#soon = true;
    queueMicrotask(() => {
      this.#soon = false;
      this.#turn();
    });
  }

  override _write(chunk: Buffer, _encoding: string, done: Done): void {
    if (this.#isDetached) return done(cutOff());
    try {
      this.#writeBelow(this.#rawWrite ? chunk : this.#connection.write(chunk), done);
    } catch (error) {
      done(asError(error));
    }
  }

  #writeBelow(bytes: Uint8Array, done: Done): void {
    if (this.#below.write(bytes)) done();
    else this.#afterDrain = done;
  }

  #drained(): void {
    const done = this.#afterDrain;
    this.#afterDrain = null;
    done?.();
  }

  override _final(done: Done): void {
    if (this.#isDetached) done(cutOff());
    else if (this.#rawWrite) this.#below.end(done);
    else this.#below.end(this.#connection.end(), done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#connection[Symbol.dispose]();
    this.#below.destroy(error ?? undefined);
    done(error);
  }

  // What `Bypass` asks for.

  leaveRead(sink: RawSink): void {
    this.#sink = sink;
    this.#turnSoon();
  }

  leaveWrite(): Duplex {
    this.#rawWrite = true;
    return this.#below;
  }

  hold(): void {
    this.#held = true;
    this.#below.pause();
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#turnSoon();
  }

  get below(): Duplex | null {
    const hasLeft = this.#sink !== null && this.#rawWrite && !this.#held;
    return hasLeft && this.#connection.unreadBytes === 0 ? this.#below : null;
  }
}

/** What a judge said of the peer, where that ended the handshake. */
function reasonOf(error: unknown): Error {
  const reason = asError(error);
  return reason.cause instanceof AuthError ? reason.cause : reason;
}

function cutOff(): Error {
  return Object.assign(new Error("the TLS connection was cut off"), { code: "ECONNRESET" });
}
