/** What a session says: small frames go out together, and writers wait for the wire. */
import type { Duplex } from "node:stream";

export type Done = () => void;

/** Frames that fill a TLS record wait for nothing. */
export const FULL_WRITE_BYTES = 16 * 1024;
/** Frames for which no writer waits, to a peer that reads nothing meanwhile; beyond, it is flooding us. */
const MOST_UNREAD_BYTES = 1 << 20;

export class SessionOutput {
  /** A relay worker has the wire: what is sent waits until it is back. */
  isHeld = false;
  readonly #wire: Duplex;
  /** The peer has us say more than it reads. */
  readonly #onFlood: () => void;
  /** Writers that wait for the wire; each stream has one write under way. */
  #waiting: Done[] = [];
  /** Of frames for which no writer waits, since the wire was full. */
  #unreadBytes = 0;
  /** Frames that wait for company, less than `FULL_WRITE_BYTES` of them. */
  #small: Buffer[] = [];
  #smallBytes = 0;
  #isTimed = false;
  readonly #afterThisTurn = (): void => void setImmediate(this.#afterTheNext);
  readonly #afterTheNext = (): void => {
    this.#isTimed = false;
    this.flush();
  };

  constructor(wire: Duplex, onFlood: () => void) {
    this.#wire = wire;
    this.#onFlood = onFlood;
    wire.on("drain", () => {
      this.#unreadBytes = 0;
      this.release();
    });
  }

  /** Nothing waits, neither frames nor writers. */
  get isIdle(): boolean {
    return this.#waiting.length + this.#small.length === 0;
  }

  /** Sends frames; `done` runs when the wire takes more, `through` perhaps, when it needs these no more. */
  send(bytes: Buffer, done?: Done, through?: Done): void {
    if (bytes.length < FULL_WRITE_BYTES || this.isHeld) this.#wait(bytes);
    else {
      this.flush();
      this.#wire.write(bytes, through);
    }
    if (!this.#wire.writableNeedDrain) done?.();
    else if (done !== undefined) this.#waiting.push(done);
    else this.#countUnread(bytes.length);
  }

  #countUnread(bytes: number): void {
    this.#unreadBytes += bytes;
    if (this.#unreadBytes > MOST_UNREAD_BYTES) this.#onFlood();
  }

  /**
   * Small frames wait for the end of the next turn and go out as one write: a stream's last bytes and its end are two
   * events of its origin, but one record of the peer's.
   */
  #wait(bytes: Buffer): void {
    this.#small.push(bytes);
    this.#smallBytes += bytes.length;
    if (this.#smallBytes >= FULL_WRITE_BYTES) return this.flush();
    if (this.#isTimed) return;
    this.#isTimed = true;
    setImmediate(this.#afterThisTurn);
  }

  flush(): void {
    const small = this.#small;
    if (small.length === 0 || this.isHeld || this.#wire.writableEnded || this.#wire.destroyed) return;
    this.#small = [];
    this.#smallBytes = 0;
    this.#wire.write(small.length === 1 ? (small[0] as Buffer) : Buffer.concat(small));
  }

  /** Runs all that wait for the wire. */
  release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const done of waiting) done();
  }
}
