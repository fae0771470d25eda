/** TLS on a descriptor, spoken by the runtime's own libssl without streams below. */
import { Duplex } from "node:stream";
import { DETACHABLE, type Detachable } from "#core/handover.ts";
import type { DetachedState, WireRemainder } from "#core/wire-state.ts";
import {
  BLOCKED_BY_WRITE,
  BROKEN,
  EAGAIN,
  EINTR,
  ENDED,
  FULL,
  UV_READABLE,
  UV_WRITABLE,
  type NativeTls,
  type ReadinessWatch,
  type SslTickets,
} from "#platform/tls.ts";
import type { Bypass, RawSink } from "#core/tls-bypass.ts";
import { asError } from "#core/errors.ts";
import { cutOff, systemFailure } from "./native-errors.ts";
import type { NativeStreamOptions } from "./native-stream-options.ts";
import { NativeWriter, type Done, type WriterOwner } from "./native-writer.ts";

/** What is read in one go, and how often before others have their turn. */
const READ_BYTES = 64 * 1024;
const READS_A_TURN = 8;

/** Emits `secure` once the handshake is done, where it was not. Half-close is kept; it may leave TLS behind, each direction by itself. */
export class NativeTlsStream extends Duplex implements Bypass, WriterOwner {
  readonly #native: NativeTls;
  readonly #fd: number;
  readonly #ssl: bigint;
  /** As its options say. */
  readonly exact: boolean;
  readonly remoteAddress: string | undefined;
  readonly #explain: (reason: string) => Error;
  #watch: ReadinessWatch;
  #isHandshaking: boolean;
  #wanted = false;
  /** The library holds no unread plaintext: the next data will be reported by the socket. */
  #drained = false;
  #soon = false;
  #readsAfterWrite = false;
  #ended = false;
  readonly #writer: NativeWriter;
  #tickets: SslTickets | null = null;
  #sink: RawSink | null = null;
  #held = false;
  /**
   * The descriptor and the library's object have been handed over (perhaps to a worker) or freed; this stream must not
   * touch them.
   */
  #left = false;

  /** Throws where the descriptor cannot be watched; then both are still the caller's. */
  constructor(
    native: NativeTls,
    { fd, ssl, isDone = false, exact, remoteAddress, explain }: NativeStreamOptions,
  ) {
    super({ allowHalfOpen: true });
    this.#native = native;
    this.#fd = fd;
    this.#ssl = ssl;
    this.#isHandshaking = !isDone;
    this.exact = exact;
    this.remoteAddress = remoteAddress;
    this.#explain = explain ?? ((reason) => new Error(reason));
    this.#writer = new NativeWriter(native, fd, ssl, this);
    this.#watch = this.#openWatch();
    this.#watch.want(UV_READABLE);
  }

  #openWatch(): ReadinessWatch {
    return this.#native.poller.watchReadiness(this.#fd, (events) => this.#onReady(events));
  }

  /** The library's; only while the stream lives. */
  get object(): bigint {
    return this.#ssl;
  }

  /** The peer is the right one: its tickets are kept for later connections. */
  keepTickets(tickets: SslTickets | null): void {
    this.#tickets = tickets;
  }

  // What the writer asks for.

  get hasLeft(): boolean {
    return this.#left;
  }

  onBlocked(): void {
    this.#watchOn();
  }

  [DETACHABLE](): Detachable | null {
    const { isRaw: writesRaw, isWriting } = this.#writer;
    const busy = this.#isHandshaking || isWriting || this.readableLength + this.writableLength > 0;
    if (busy || this.#ended || this.writableEnded || this.destroyed || this.#left) return null;
    const raw = this.#sink !== null && writesRaw;
    if (!raw && (this.#sink !== null || writesRaw)) return null;
    const leave = (): DetachedState => this.#leave(raw);
    const takeBack = (fd: number, remainder: WireRemainder | null): void => this.#takeBack(fd, remainder);
    return {
      kind: raw ? "plain" : "tls",
      socket: this.#fd,
      detach: leave,
      ...(raw ? {} : { reattach: takeBack }),
    };
  }

  #leave(raw: boolean): DetachedState {
    this.#left = true;
    this.#tickets?.keep(this.#ssl, performance.now());
    this.#watch.close();
    if (raw) this.#native.ssl.free(this.#ssl);
    return { numbers: raw ? [] : [Number(this.#ssl)], unread: null };
  }

  /** Of a port that leaves the object of the library as it is; others free it and have nothing left. */
  #takeBack(fd: number, remainder: WireRemainder | null): void {
    if (fd < 0 || remainder === null) return;
    this.#left = false;
    this.#writer.continueWith(remainder.unsent);
    if (this.destroyed) return this.#release();
    try {
      this.#watch = this.#openWatch();
    } catch (error) {
      this.destroy(asError(error));
      return;
    }
    if (remainder.failed) return void this.destroy(cutOff());
    this.#drained = false;
    this.#writer.turn();
    this.#readSoon();
  }

  override _read(): void {
    this.#wanted = true;
    if (this.#isHandshaking) return;
    if (this.#drained) this.#watchOn();
    else this.#readSoon();
  }

  /** Not from within `_read`: what is pushed there is not delivered at once. */
  #readSoon(): void {
    if (this.#soon) return;
    this.#soon = true;
    setImmediate(() => {
      this.#soon = false;
      this.#readTurn();
    });
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    if (this.#left) return done(cutOff());
    this.#writer.write(chunk, done);
  }

  override _final(done: Done): void {
    if (this.#left) return done(cutOff());
    this.#writer.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    if (!this.#left) this.#release();
    done(error);
  }

  #release(): void {
    this.#left = true;
    this.#tickets?.keep(this.#ssl, performance.now());
    this.#watch.close();
    this.#native.ssl.free(this.#ssl);
    // What node:tls would have read by then: or the system would answer with a reset where it answers with an end.
    if (this.#isHandshaking) this.#native.calls.receive(this.#fd, READ_BYTES);
    this.#native.calls.close(this.#fd);
  }

  /**
   * `mayKeep`: keep watching for readability although nothing is read now. When reading resumes soon, a spurious event
   * costs less than two changes of the watch.
   */
  #watchOn(mayKeep = false): void {
    if (this.#left) return;
    const waits = this.#readsAfterWrite || this.#writer.hasUnsent;
    const reads = (mayKeep || this.#wanted) && !this.#ended && !this.#held && !waits;
    const writes = this.#readsAfterWrite || this.#writer.waits;
    this.#watch.want((reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0));
  }

  #onReady(events: number): void {
    if (this.#isHandshaking) return this.#handshake();
    if ((events & UV_WRITABLE) !== 0) {
      this.#readsAfterWrite = false;
      this.#writer.turn();
    }
    this.#readTurn();
  }

  /** For the side that speaks first. The handshake may be done, or have failed, before this returns. */
  begin(): void {
    if (this.#isHandshaking && !this.#left) this.#handshake();
  }

  #handshake(): void {
    const { ssl } = this.#native;
    const answer = ssl.handshake(this.#ssl);
    if (answer === BROKEN) return void this.destroy(this.#explain(ssl.reasonOf(ssl.fault)));
    if (answer === EAGAIN) return this.#watch.want(UV_READABLE);
    if (answer === BLOCKED_BY_WRITE) return this.#watch.want(UV_WRITABLE);
    this.#isHandshaking = false;
    this.#watchOn(true);
    this.emit("secure");
    if (this.#wanted) this.#readSoon();
  }

  #readTurn(): void {
    let more = true;
    for (let left = READS_A_TURN; more && left > 0; left--) {
      const waits = this.#held || this.#writer.hasUnsent;
      if (this.#left || !this.#wanted || this.#ended || waits) return this.#watchOn();
      more = this.#sink === null ? this.#readSealed() : this.#readRaw(this.#sink);
    }
    this.#drained = !more;
    if (more) this.#readSoon();
    else this.#watchOn();
  }

  /** False: nothing more is to be had now. */
  #readSealed(): boolean {
    const { ssl } = this.#native;
    this.#drained = false;
    // The event loop reports data left in the socket, which costs less than one more read that finds nothing.
    const bytes = this.exact ? ssl.readRecord(this.#ssl) : ssl.readOnce(this.#ssl, READ_BYTES);
    const { outcome } = ssl; // read now: a consumer of the plaintext may use the library's object, which overwrites it
    if (bytes > 0) this.#wanted = this.push(this.#copy(bytes)) || this.#sink !== null;
    if (this.#left) return false; // the consumer of these bytes has handed the descriptor over
    if (outcome === FULL || outcome === EINTR) return true;
    if (outcome === BLOCKED_BY_WRITE) this.#readsAfterWrite = true;
    else if (outcome === ENDED) this.#endRead(() => this.push(null));
    else if (outcome !== EAGAIN) this.destroy(cutOff());
    return false;
  }

  #readRaw(sink: RawSink): boolean {
    const bytes = this.#native.calls.receive(this.#fd, READ_BYTES);
    if (bytes > 0) sink.data(this.#copy(bytes));
    else if (bytes === 0) this.#endRead(() => sink.end());
    else if (bytes !== EAGAIN && bytes !== EINTR) this.destroy(systemFailure("read", bytes));
    return bytes > 0 || bytes === EINTR;
  }

  #copy(bytes: number): Buffer {
    return Buffer.from(this.#native.calls.buffer.subarray(0, bytes));
  }

  #endRead(tell: () => void): void {
    this.#ended = true;
    tell();
  }

  // What `Bypass` asks for. Nothing is read ahead, so what follows a record is still in the socket.

  leaveRead(sink: RawSink): void {
    this.#sink = sink;
    this.#wanted = true;
  }

  leaveWrite(): Duplex {
    this.#writer.isRaw = true;
    return this;
  }

  hold(): void {
    this.#held = true;
    this.#watchOn();
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#readSoon();
  }

  get below(): Duplex | null {
    return this.#sink !== null && this.#writer.isRaw ? this : null;
  }
}
