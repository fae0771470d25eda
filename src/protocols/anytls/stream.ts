import { Duplex } from "node:stream";
import { DETACHABLE, type Detachable } from "#core/handover.ts";

/** What the owner of the stream may still have to pass on when the peer's FIN has come; then the stream is closed. */
const GRACE_MS = 1_000;
/** Bytes that a stream moves before a relay worker may take it over: there and back costs as much as moving these. */
const WORTH_BYTES = 256 * 1024;

/** The session that a stream is in. */
export interface StreamOwner {
  /** The stream's reader has room again. */
  readable(stream: SessionStream): void;
  /** `done` runs when the session takes more. */
  sendData(stream: SessionStream, data: Buffer, done: () => void): void;
  /** Says that a stream is over for both sides and forgets it. */
  finish(stream: SessionStream): void;
  /** Null: no worker can take the wire over now, and perhaps never. */
  detachableFor(stream: SessionStream): Detachable | null;
}

/** One stream inside a session. A FIN, from either side, ends both directions: there is no half-close. */
export abstract class SessionStream extends Duplex {
  id: number;
  /** Null once either side has ended the stream: what is written then goes nowhere. */
  protected session: StreamOwner | null;
  #grace: NodeJS.Timeout | null = null;
  #ended = false;
  #movedBytes = 0;

  constructor(session: StreamOwner, id: number) {
    super({ allowHalfOpen: true });
    this.session = session;
    this.id = id;
  }

  /** Data from the peer; false: the reader is slow. */
  arrive(data: Buffer): boolean {
    this.#movedBytes += data.length;
    return this.push(data);
  }

  /** The peer's FIN; the session has forgotten the stream. */
  farEnd(): void {
    this.session = null;
    this.once("end", () => (this.#grace = setTimeout(() => this.destroy(), GRACE_MS)));
    this.endReading();
  }

  /** Nothing more will arrive. */
  protected endReading(): void {
    if (this.#ended || this.destroyed) return;
    this.#ended = true;
    this.push(null);
  }

  override _read(): void {
    this.session?.readable(this);
  }

  override _write(data: Buffer, _encoding: string, done: () => void): void {
    this.#movedBytes += data.length;
    if (this.session === null) done();
    else this.session.sendData(this, data, done);
  }

  /** It is nothing but payload from here on. */
  protected abstract get mayLeave(): boolean;

  [DETACHABLE](): Detachable | null {
    const isOver = this.destroyed || this.writableEnded || this.readableLength + this.writableLength > 0;
    if (isOver || !this.mayLeave || this.#movedBytes < WORTH_BYTES) return null;
    return this.session?.detachableFor(this) ?? null;
  }

  /** Says FIN where it was not said. */
  protected leave(): void {
    const { session } = this;
    this.session = null;
    session?.finish(this);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#grace !== null) clearTimeout(this.#grace);
    this.leave();
    done(error);
  }
}
