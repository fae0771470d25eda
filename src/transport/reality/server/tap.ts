/** One end of a connection whose reader changes: first who listens, then a relay or a TLS engine. */
import type { Duplex } from "node:stream";

/** What a tap tells its reader. Called again for what came before it was there. */
export interface TapReader {
  data(bytes: Buffer): void;
  end(): void;
}

/** Bytes come only while there is a reader, so nothing piles up here. Half-close is kept. */
export class Tap {
  readonly stream: Duplex;
  #reader: TapReader | null = null;
  #ended = false;
  readonly #onData = (bytes: Buffer): void => this.#reader?.data(bytes);
  readonly #onEnd = (): void => {
    this.#ended = true;
    this.#reader?.end();
  };

  constructor(stream: Duplex) {
    this.stream = stream;
    stream.on("end", this.#onEnd);
  }

  get hasEnded(): boolean {
    return this.#ended || this.stream.readableEnded;
  }

  /** Takes the place of the reader before it. */
  read(reader: TapReader): void {
    const isFirst = this.#reader === null;
    this.#reader = reader;
    if (isFirst) this.stream.on("data", this.#onData);
    if (this.hasEnded) reader.end();
    else this.stream.resume();
  }

  /** The stream is another owner's from here. */
  release(): Duplex {
    this.stream.pause();
    this.stream.off("data", this.#onData).off("end", this.#onEnd);
    return this.stream;
  }
}
