import { Duplex } from "node:stream";

export type Done = (error?: Error | null) => void;

/** The services of its session that a stream uses. */
export interface StreamOwner {
  /** `done` when more may be written. */
  sendData(stream: MuxStream, data: Buffer, done: Done): void;
  /** Our side has ended. `done` is called when the end was sent, or is certain to be. */
  sendEnd(stream: MuxStream, done: Done): void;
  /** The reader has taken so many bytes. */
  taken(stream: MuxStream, bytes: number): void;
  /** Bytes that wait for a reader have grown (or shrunk, negative) by so many. */
  holds(bytes: number): void;
  /** It is over; `whole` when both directions came to their end. */
  gone(stream: MuxStream, whole: boolean): void;
}

/** By then a server has answered, or it waits for the end. */
const SILENCE_MS = 1_000;
const HIGH_WATER_MARK = 64 * 1024;
/** What a piece that waits costs besides its bytes: peers choose how small pieces are. */
const PIECE_BYTES = 128;

/**
 * One stream of a session. Bytes that its reader is too slow for wait here; the session bounds the sum over all
 * streams.
 */
export class MuxStream extends Duplex {
  readonly id: number;
  readonly #owner: StreamOwner;
  readonly #waiting: Buffer[] = [];
  #heldBytes = 0;
  #wanted = false;
  #farEnded = false;

  constructor(owner: StreamOwner, id: number) {
    super({
      allowHalfOpen: true,
      readableHighWaterMark: HIGH_WATER_MARK,
      writableHighWaterMark: HIGH_WATER_MARK,
    });
    this.#owner = owner;
    this.id = id;
    // Its user has a listener of its own, but later than the session may break: 'close' follows.
    this.on("error", () => {});
  }

  get farEnded(): boolean {
    return this.#farEnded;
  }

  /** Something has come and waits for the reader. */
  get hasUnread(): boolean {
    return this.#heldBytes + this.readableLength > 0;
  }

  /** Bytes from the peer. */
  arrive(data: Buffer): void {
    if (this.#farEnded || this.destroyed) return; // behind its own end mark
    if (this.#wanted && this.#waiting.length === 0) return this.#give(data);
    this.#waiting.push(data);
    this.#hold(data.length + PIECE_BYTES);
  }

  /** The peer has written its last. */
  farEnd(): void {
    if (this.#farEnded || this.destroyed) return;
    this.#farEnded = true;
    if (this.#waiting.length === 0) this.push(null);
  }

  #give(data: Buffer): void {
    this.#wanted = this.push(data);
    this.#owner.taken(this, data.length);
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    this.#owner.holds(bytes);
  }

  override _read(): void {
    this.#wanted = true;
    while (this.#wanted) {
      const data = this.#waiting.shift();
      if (data === undefined) return;
      this.#hold(-data.length - PIECE_BYTES);
      this.#give(data);
      if (this.#waiting.length === 0 && this.#farEnded) this.push(null);
    }
  }

  override _write(data: Buffer, _encoding: string, done: Done): void {
    this.#owner.sendData(this, data, done);
  }

  override _final(done: Done): void {
    this.#owner.sendEnd(this, done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#waiting.length = 0;
    this.#hold(-this.#heldBytes);
    this.#owner.gone(this, this.#farEnded && this.writableFinished);
    done(error);
  }
}

/**
 * A stream for protocols whose peers take an end for the end of both directions: the client's end is sent only after
 * the server has been silent for a second.
 */
export class PatientStream extends MuxStream {
  endSent = false;
  #silence: NodeJS.Timeout | null = null;
  #keepsReading = false;
  #leftAtMs = Infinity;

  /** The peer's end, when it comes, is that of its own direction. */
  keepReading(): void {
    this.#keepsReading = true;
  }

  override farEnd(): void {
    if (!this.farEnded && !this.#keepsReading) this.#leftAtMs = performance.now();
    super.farEnd();
  }

  /** Has the peer ended both directions so long ago? */
  hasLeft(graceMs: number): boolean {
    return this.#leftAtMs !== Infinity && performance.now() - this.#leftAtMs > graceMs;
  }

  /** The peer's silence: while a slow reader leaves something here, more may be held up behind it. */
  waitForSilence(then: () => void): void {
    this.#silence = setTimeout(() => {
      if (this.hasUnread) this.waitForSilence(then);
      else then();
    }, SILENCE_MS);
  }

  stopWaiting(): void {
    if (this.#silence !== null) clearTimeout(this.#silence);
  }

  override arrive(data: Buffer): void {
    this.#silence?.refresh();
    super.arrive(data);
  }

  override _read(): void {
    this.#silence?.refresh();
    super._read();
  }
}
