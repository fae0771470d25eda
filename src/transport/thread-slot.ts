/** Kept with the host: where listeners find the threads that run them. */
import type { QuicThreads } from "#transport/quic/remote/quic-threads.ts";

export class QuicThreadsSlot {
  /** Makes them; null: listeners run on the main thread. Never rejects. */
  start: (() => Promise<QuicThreads | null>) | null = null;
  #starting: Promise<QuicThreads | null> | null = null;

  /** Starts them at the first call, and tries again where there was none. */
  async get(): Promise<QuicThreads | null> {
    this.#starting ??= this.start?.() ?? Promise.resolve(null);
    const threads = await this.#starting;
    if (threads === null) this.#starting = null;
    return threads;
  }
}
