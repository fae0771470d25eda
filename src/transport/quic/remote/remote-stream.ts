/** A stream of a client that another thread serves, as a Duplex; a relay in that thread can go on with it. */
import { Duplex } from "node:stream";
import { type Detachable, DETACHABLE, IN_THREAD } from "#core/handover.ts";
import { COPIES, GIVES } from "#core/stream.ts";

/** What it asks of its client. */
export interface RemoteStreamHost {
  /** The number of the client. */
  readonly number: number;
  /** The relay worker of the same thread. */
  readonly worker: object;
  write(stream: number, bytes: Uint8Array<ArrayBuffer>): void;
  finish(stream: number): void;
  destroy(stream: number, code: number, isFault: boolean): void;
  took(stream: number, bytes: number): void;
  /** All that was said up to now is on its way, before anything else that the thread is told. */
  flush(): void;
  /** It is closed here. */
  onClosed(stream: number): void;
}

/** A piece at a time: the thread bounds those that wait, however small they are. */
const HIGH_WATER_BYTES = 1;
/** Bytes on their way to the thread, or waiting there for room, before the writer waits. */
const MOST_UNWRITTEN_BYTES = 256 * 1024;

export class RemoteStream extends Duplex {
  readonly [COPIES] = true;
  readonly [GIVES] = true;
  readonly [IN_THREAD] = true;
  readonly id: number;
  readonly send: object | null;
  abortCode = 0;
  readonly #host: RemoteStreamHost;
  #incoming: Uint8Array<ArrayBuffer>[] = [];
  #isWanted = false;
  /** The thread knows that it is read. */
  #isRead: boolean;
  /** What comes last has come; its reader was told. */
  #hasEnd = false;
  #hasSaidEnd = false;
  /** Given to the reader, in all. */
  #givenBytes = 0;
  #unwrittenBytes = 0;
  #afterRoom: (() => void) | null = null;
  #afterFinish: (() => void) | null = null;
  /** A relay in its thread goes on with it. */
  #isLent = false;
  /** The thread has no such stream any more. */
  #isGone = false;

  constructor(
    host: RemoteStreamHost,
    id: number,
    ways: { readonly reads: boolean; readonly writes: boolean },
  ) {
    super({ allowHalfOpen: true, readableHighWaterMark: HIGH_WATER_BYTES });
    this.#host = host;
    this.id = id;
    this.send = ways.writes ? this : null;
    this.#isRead = !ways.reads;
    if (!ways.reads) {
      this.push(null);
      this.resume();
    }
    if (!ways.writes) this.end();
  }

  onData(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#isLent || this.destroyed) return; // the thread has kept what was not taken
    this.#incoming.push(bytes);
    this.#give();
  }

  onEnd(): void {
    this.#hasEnd = true;
    if (!this.#isLent) this.#give();
  }

  #give(): void {
    let taken = 0;
    while (this.#isWanted && !this.#isLent) {
      const bytes = this.#incoming.shift();
      if (bytes === undefined) break;
      taken += bytes.length;
      this.#givenBytes += bytes.length; // first: its reader may lend the stream
      this.#isWanted = this.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    }
    if (taken > 0 && !this.#isLent && !this.#isGone) this.#host.took(this.id, taken);
    if (this.#hasEnd && this.#incoming.length === 0) this.#sayEnd();
  }

  #sayEnd(): void {
    if (this.#hasSaidEnd || this.#isLent || this.destroyed) return;
    this.#hasSaidEnd = true;
    this.push(null);
  }

  onWrote(bytes: number): void {
    this.#unwrittenBytes -= bytes;
    if (this.#unwrittenBytes < MOST_UNWRITTEN_BYTES) this.#release();
  }

  #release(): void {
    const done = this.#afterRoom;
    this.#afterRoom = null;
    done?.();
  }

  onFinished(): void {
    const done = this.#afterFinish;
    this.#afterFinish = null;
    done?.();
  }

  /** `error` null: both directions have ended, or the peer reads no more. */
  onGone(error: Error | null): void {
    this.#isGone = true;
    if (this.#isLent || this.destroyed) return;
    if (error !== null) this.destroy(error);
    else if (this.readableEnded || this.send === null) this.#leave();
    else this.once("end", () => this.#leave());
    this.#give();
  }

  #leave(): void {
    if (!this.writableEnded || this.#afterFinish !== null) this.destroy();
  }

  /** The connection is over: what a relay in the thread had of it ends there. */
  abandon(error: Error): void {
    this.#isGone = true;
    if (!this.#isLent) this.destroy(error);
  }

  override _read(): void {
    this.#isWanted = true;
    if (!this.#isRead && !this.#isGone && !this.#isLent) this.#host.took(this.id, 0);
    this.#isRead = true;
    this.#give();
  }

  override _write(bytes: Uint8Array, _encoding: string, done: () => void): void {
    if (this.#isGone) return void setImmediate(done); // thrown away, as behind a peer that reads no more
    this.#unwrittenBytes += bytes.length;
    this.#host.write(this.id, new Uint8Array(bytes));
    if (this.#unwrittenBytes < MOST_UNWRITTEN_BYTES) done();
    else this.#afterRoom = done;
  }

  override _final(done: () => void): void {
    if (this.#isGone || this.send === null) return done();
    this.#afterFinish = done;
    this.#host.finish(this.id);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#incoming = [];
    this.#afterRoom = this.#afterFinish = null;
    if (!this.#isGone && !this.#isLent) this.#host.destroy(this.id, this.abortCode, error !== null);
    this.#host.onClosed(this.id);
    done(error);
  }

  [DETACHABLE](): Detachable | null {
    if (this.destroyed || this.#isGone || this.writableEnded || this.#afterRoom !== null) return null;
    return { kind: "quic", socket: -1, worker: this.#host.worker, detach: () => this.#lend() };
  }

  #lend(): { readonly numbers: readonly number[]; readonly unread: null } {
    this.#isLent = true;
    this.#incoming = [];
    this.#host.flush();
    return { numbers: [this.#host.number, this.id, this.#givenBytes], unread: null };
  }
}
