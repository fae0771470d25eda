import type { Duplex } from "node:stream";

/**
 * Ends a client that has been silent for too long where nothing else would: between two requests, behind its last
 * answer, and behind its own end while the origin says nothing. The library bounds the idle time of its own sockets
 * only, and TLS need not be one.
 */
export class Silence {
  /** Requests that are not answered yet. */
  waiting = 0;
  readonly #stream: Duplex;
  #timer: NodeJS.Timeout | null;

  constructor(stream: Duplex, limitMs: number) {
    this.#stream = stream;
    this.#timer = setTimeout(() => this.#onTime(), limitMs).unref();
    stream.once("end", () => this.broken());
    stream.once("close", () => this.leave());
  }

  /** Something was said: the time begins anew. */
  broken(): void {
    this.#timer?.refresh();
  }

  /** The stream has another owner now, or is closed. */
  leave(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** An origin may think for as long as its client waits. */
  #onTime(): void {
    if (this.waiting === 0 || this.#stream.readableEnded) this.#stream.destroy();
  }
}
