import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { messageOf } from "#core/errors.ts";
import type { ThreadMessage } from "#dataplane/workers/shared/worker-data.ts";

/** The thread of one worker: whether it runs, whether it keeps the process alive, and why it has ended. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #exited = Promise.withResolvers<void>();
  #alive = false;
  /** It has run, and its end has not been asked for. */
  #isWanted = false;
  #why = "it ended by itself";
  /** Reasons to keep the process alive. */
  #holds = 0;

  /** `onExit`: nothing of it runs any more; with the reason where its end was not asked for, else null. */
  constructor(worker: Worker, onExit: (why: string | null) => void) {
    this.#worker = worker;
    worker.once("message", () => (this.#alive = this.#isWanted = true));
    worker.on("message", ({ fault, why }: ThreadMessage) => {
      if (why !== undefined) this.#why = why;
      if (fault !== undefined) throw fault; // reported where faults of the main thread are
    });
    worker.on("error", (error) => {
      this.#alive = false; // it takes no more; what it has is touched when nothing of it runs any more
      this.#why = messageOf(error);
    });
    worker.once("exit", () => {
      this.#alive = false;
      onExit(this.#isWanted ? this.#why : null);
      this.#exited.resolve();
    });
  }

  /** From its first message to its end. */
  get alive(): boolean {
    return this.#alive;
  }

  get why(): string {
    return this.#why;
  }

  /** Resolves when it is alive, or has ended before. */
  async started(): Promise<void> {
    const ready = once(this.#worker, "message").catch(() => {}); // `why` has it
    this.#worker.ref();
    await Promise.race([ready, this.#exited.promise]);
    this.#worker.unref();
  }

  hold(change: 1 | -1): void {
    this.#holds += change;
    if (this.#holds === 1 && change === 1) this.#worker.ref();
    else if (this.#holds === 0) this.#worker.unref();
  }

  /** For a thread that was told to end; resolves when it has. */
  async ended(): Promise<void> {
    this.#alive = this.#isWanted = false;
    this.hold(1); // to the end, whatever connections end meanwhile
    await this.#exited.promise;
  }
}
