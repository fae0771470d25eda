import { REQUEST_SLOTS } from "#dataplane/workers/shared/request-memory.ts";
import type { RequestingTask } from "./pending-owner.ts";

/** The slots of one worker in which requests lie for the main thread. Tasks wait for one in order of arrival. */
export class RequestSlots<T extends Pick<RequestingTask, "askAgain">> {
  readonly #free: number[] = Array.from({ length: REQUEST_SLOTS }, (_, at) => REQUEST_SLOTS - 1 - at);
  /** No more than the worker has slots for clients; the deadline of its handshake ends a wait. */
  readonly #waiting = new Set<T>();

  /** -1: none is free now; `askAgain` is called when one is. */
  take(task: T): number {
    const index = this.#free.pop() ?? -1;
    if (index < 0) this.#waiting.add(task);
    return index;
  }

  free(index: number): void {
    this.#free.push(index);
    for (const next of this.#waiting) {
      if (this.#free.length === 0) return;
      this.#waiting.delete(next);
      next.askAgain(); // it may have no use for it any more
    }
  }

  /** The task waits no longer. */
  leave(task: T): void {
    this.#waiting.delete(task);
  }

  /** `on` may remove the task that it was called with. */
  forEachWaiting(on: (task: T) => void): void {
    for (const task of this.#waiting) on(task);
  }
}
