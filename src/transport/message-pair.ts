import { Duplex, type Readable, type Writable } from "node:stream";

/**
 * What is written goes into one message, what is read comes out of another: the request and the answer of an exchange.
 * Owns both. `end` ends the written message; it is over when both have ended, or one of them broke. A peer that wants no
 * more of the written one closes it, and may do so together with its answer: that is read to its end all the same, and
 * what is written meanwhile is thrown away.
 */
export class MessagePair extends Duplex {
  readonly #out: Writable;
  #in: Readable | null = null;
  /** Our own mark: HTTP messages take theirs back while the socket has more to write. */
  #written = false;
  #isRefused = false;
  #afterDrain: (() => void) | null = null;

  /** `input` null: it comes later, by `adopt`. */
  constructor(out: Writable, input: Readable | null) {
    super({ allowHalfOpen: true });
    this.#out = out;
    out.on("drain", () => this.#drained());
    out.on("error", (error) => this.destroy(error));
    out.on("finish", () => {
      this.#written = true;
    });
    out.on("close", () => {
      if (!this.#written) this.#refused();
    });
    if (input !== null) this.adopt(input);
  }

  adopt(input: Readable): void {
    this.#in = input;
    input.on("error", (error) => this.destroy(error));
    if (this.destroyed) return void input.destroy();
    input.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) input.pause();
    });
    input.on("end", () => this.push(null));
    input.on("close", () => {
      if (!input.readableEnded) this.destroy(new Error("the message that was being read broke off"));
    });
  }

  override _read(): void {
    this.#in?.resume();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // The runtime ends an HTTP/2 stream that the peer has reset, some time before it closes.
    if (this.#isRefused || this.#out.writableEnded) done();
    else if (this.#out.write(bytes)) done();
    else this.#afterDrain = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#isRefused) done();
    else this.#out.end((error?: Error | null) => done(error && this.#isClosedInOrder() ? null : error));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#written || !this.#in?.readableEnded) {
      this.#out.destroy();
      this.#in?.destroy();
    }
    done(error);
  }

  /** The peer may close it while its last bytes are on their way. */
  #isClosedInOrder(): boolean {
    return this.#out.errored === null && this.#in !== null;
  }

  /** Closed by the peer, without an error. */
  #refused(): void {
    if (this.destroyed) return;
    if (this.#in === null || this.readableEnded)
      return void this.destroy(new Error("the message that was being written broke off"));
    this.#isRefused = true;
    this.once("end", () => this.destroy());
    this.#drained();
  }

  #drained(): void {
    const done = this.#afterDrain;
    this.#afterDrain = null;
    done?.();
  }
}
