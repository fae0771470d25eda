/** One end of a connection whose reader changes: first who listens, then a relay or a TLS engine. */
import type { Duplex } from "node:stream";

/** What a tap tells its reader. Called again for what came before it was there. */
export interface TapReader {
  data(bytes: Buffer): void;
  end(): void;
  /** The stream was closed, whether it had ended or not. */
  close?(): void;
}

/**
 * Half-close is kept. Readers mostly follow each other at once, so the stream goes on without one, and is only paused by the first
 * piece that comes then: a pause and a resume for each change cost more than what is read.
 */
export class Tap {
  readonly stream: Duplex;
  #reader: TapReader | null = null;
  #isReading = false;
  /** What came while there was no reader. */
  #waiting: Buffer[] = [];
  #ended = false;
  readonly #onData = (bytes: Buffer): void => {
    if (this.#reader !== null && this.#waiting.length === 0) return this.#reader.data(bytes);
    this.#waiting.push(bytes);
    this.stream.pause();
  };
  readonly #onEnd = (): void => {
    this.#ended = true;
    if (this.#waiting.length === 0) this.#reader?.end();
  };
  readonly #onClose = (): void => this.#reader?.close?.();

  constructor(stream: Duplex) {
    this.stream = stream;
    stream.on("end", this.#onEnd).on("close", this.#onClose);
  }

  get hasEnded(): boolean {
    return this.#ended || this.stream.readableEnded;
  }

  /** Takes the place of the reader before it. */
  read(reader: TapReader): void {
    this.#reader = reader;
    while (this.#reader === reader) {
      const bytes = this.#waiting.shift();
      if (bytes === undefined) break;
      reader.data(bytes);
    }
    if (this.#reader !== reader) return;
    if (this.hasEnded) reader.end();
    if (this.#reader === reader && this.stream.destroyed) reader.close?.();
    if (this.#reader === reader) this.#flow();
  }

  #flow(): void {
    if (!this.#isReading) this.stream.on("data", this.#onData);
    this.#isReading = true;
    if (this.stream.isPaused()) this.stream.resume();
  }

  /** What comes before the first reader is there waits for it: one piece, for that one pauses the stream. */
  listen(): void {
    this.#flow();
  }

  /** There is no reader until the next one. */
  leave(): void {
    this.#reader = null;
  }

  /** The stream is another owner's from here. */
  release(): Duplex {
    this.#reader = null;
    this.stream.pause();
    this.stream.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    if (this.#waiting.length > 0 && !this.hasEnded) this.stream.unshift(Buffer.concat(this.#waiting));
    return this.stream;
  }
}
