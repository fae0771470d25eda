/** Kept with the host: where listeners find the thread that runs them. */
import type { QuicThread } from "#transport/quic/remote/quic-thread.ts";

export class QuicThreadSlot {
  /** Makes the thread; null: listeners run on the main thread. Never rejects. */
  start: (() => Promise<QuicThread | null>) | null = null;
  #starting: Promise<QuicThread | null> | null = null;

  /** Starts it at the first call, and tries again where there was none. */
  async get(): Promise<QuicThread | null> {
    this.#starting ??= this.start?.() ?? Promise.resolve(null);
    const thread = await this.#starting;
    if (thread === null) this.#starting = null;
    return thread;
  }
}
