/** The writing side of a `NativeTlsStream`: one chunk at a time, as far as the socket takes it. */
import { EAGAIN, EINTR, type NativeTls } from "#platform/tls.ts";
import { cutOff, systemFailure } from "./native-errors.ts";

export type Done = (error?: Error | null) => void;

/** The stream that writes. */
export interface WriterOwner {
  /** The descriptor and the library's object are not the stream's any more. */
  readonly hasLeft: boolean;
  readonly destroyed: boolean;
  /** The socket takes nothing now: `turn` is to be called when it does. */
  onBlocked(): void;
  destroy(error: Error): void;
}

export class NativeWriter {
  /** TLS has been left behind: bytes go out as they are. */
  isRaw = false;
  readonly #native: NativeTls;
  readonly #fd: number;
  readonly #ssl: bigint;
  readonly #owner: WriterOwner;
  #chunk: Uint8Array | null = null;
  #at = 0;
  #written: Done | null = null;
  #finished: Done | null = null;
  /**
   * Ciphertext that the previous owner of the object sealed but did not send; it is sent before anything else is
   * written or read.
   */
  #unsent: Uint8Array | null = null;

  /** `fd` and `ssl` stay the owner's. */
  constructor(native: NativeTls, fd: number, ssl: bigint, owner: WriterOwner) {
    this.#native = native;
    this.#fd = fd;
    this.#ssl = ssl;
    this.#owner = owner;
  }

  get hasUnsent(): boolean {
    return this.#unsent !== null;
  }

  /** A chunk is under way. */
  get isWriting(): boolean {
    return this.#written !== null || this.#unsent !== null;
  }

  /** There is something to write as soon as the socket takes it: a chunk, or the end. */
  get waits(): boolean {
    return this.isWriting || this.#finished !== null;
  }

  write(chunk: Uint8Array, done: Done): void {
    this.#chunk = chunk;
    this.#at = 0;
    this.#written = done;
    this.turn();
  }

  /** Says that no more follows, behind what is under way. */
  end(done: Done): void {
    this.#finished = done;
    this.turn();
  }

  /** For an object that comes back: null where all that was sealed was sent. */
  continueWith(unsent: Uint8Array | null): void {
    this.#unsent = unsent;
  }

  /** All that waits, as far as the socket takes it. */
  turn(): void {
    if (this.#owner.hasLeft) return;
    if (this.#unsent !== null) this.#sendUnsent(this.#unsent);
    if (this.#unsent !== null || this.#owner.destroyed) return;
    if (this.#written !== null) this.#writeOn(this.#written);
    if (this.#finished !== null && !this.#owner.hasLeft) this.#finish(this.#finished); // the write's callback may have ended the stream
  }

  #sendUnsent(unsent: Uint8Array): void {
    const { calls } = this.#native;
    const piece = unsent.subarray(0, calls.buffer.length);
    calls.buffer.set(piece);
    const sent = calls.send(this.#fd, piece.length);
    if (sent < 0 && sent !== EAGAIN && sent !== EINTR)
      return this.#owner.destroy(systemFailure("write", sent));
    this.#unsent = sent < unsent.length ? unsent.subarray(Math.max(0, sent)) : null;
    if (this.#unsent !== null) this.#owner.onBlocked();
  }

  #writeOn(done: Done): void {
    const { calls, ssl } = this.#native;
    const chunk = this.#chunk as Uint8Array;
    while (this.#at < chunk.length) {
      const piece = chunk.subarray(this.#at, this.#at + calls.buffer.length);
      calls.buffer.set(piece);
      const size = piece.length;
      const taken = this.isRaw ? calls.send(this.#fd, size) : ssl.write(this.#ssl, size);
      if (taken === EAGAIN) return this.#owner.onBlocked();
      if (taken < 0 && taken !== EINTR)
        return this.#wrote(done, this.isRaw ? systemFailure("write", taken) : cutOff());
      this.#at += Math.max(0, taken);
    }
    this.#wrote(done, null);
  }

  #wrote(done: Done, error: Error | null): void {
    this.#written = this.#chunk = null;
    done(error);
  }

  #finish(done: Done): void {
    const { calls, ssl } = this.#native;
    const said = this.isRaw ? 0 : ssl.shutdown(this.#ssl);
    if (said === EAGAIN) return this.#owner.onBlocked();
    this.#finished = null;
    if (said === 0) calls.endWriting(this.#fd);
    done(said === 0 ? null : cutOff());
  }
}
