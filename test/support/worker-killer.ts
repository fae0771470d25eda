/** Ends threads of this process for real, from outside, as a fault of the runtime would. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Worker } from "node:worker_threads";

const CHANNEL = "worker_threads"; // https://nodejs.org/api/diagnostics_channel.html#worker-thread

/** The threads that have been started since, by their names. */
export class WorkerKiller implements Disposable {
  readonly #workers: Worker[] = [];
  readonly #onMessage = (message: unknown): void =>
    void this.#workers.push((message as { worker: Worker }).worker);

  constructor() {
    subscribe(CHANNEL, this.#onMessage);
  }

  /** How many of this name live. */
  count(name: string): number {
    return this.#of(name).length;
  }

  /** Ends those that live now; resolves when they are gone. */
  async kill(name: string): Promise<void> {
    await Promise.all(this.#of(name).map((worker) => worker.terminate()));
  }

  #of(name: string): readonly Worker[] {
    return this.#workers.filter(({ threadName, threadId }) => threadName === name && threadId >= 0);
  }

  [Symbol.dispose](): void {
    unsubscribe(CHANNEL, this.#onMessage);
  }
}
