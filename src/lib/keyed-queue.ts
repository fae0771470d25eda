/** Work that must not overlap: in order for one key, side by side for different keys. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Work that waits for one key keeps a request open; beyond this the next one is refused. */
const MOST_WAITING = 1024;

/** Work of one key is done piece by piece, in the order of its arrival; work of other keys continues meanwhile. */
export class KeyedQueue {
  readonly #refuse: (waiting: number) => Error;
  /** What new work waits for when nothing else of its key is waiting. */
  #barrier: Promise<unknown> = Promise.resolve();
  readonly #queues = new Map<string, KeyQueue>();

  /** `refuse` makes the error for work that would be one too many behind `waiting` others of its key. */
  constructor(refuse: (waiting: number) => Error) {
    this.#refuse = refuse;
  }

  /** Rejects as `work` does, and with the error of `refuse` when 1,024 wait for the key already. */
  on<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    let queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, (queue = { last: this.#barrier, waiting: 0 }));
    if (queue.waiting >= MOST_WAITING) return Promise.reject(this.#refuse(MOST_WAITING));
    const own = queue;
    own.waiting++;
    const done = own.last.then(work).finally(() => {
      if (--own.waiting === 0 && this.#queues.get(key) === own) this.#queues.delete(key);
    });
    own.last = done.catch(() => {}); // the caller has it
    return done;
  }

  /**
   * Does `work` while no other work runs. Work that arrives later begins in a later turn of the event loop, so that
   * the caller has the rest of the current turn undisturbed.
   */
  exclusive<T>(work: () => T | Promise<T>): Promise<T> {
    const before = [this.#barrier, ...[...this.#queues.values()].map(({ last }) => last)];
    const done = Promise.all(before).then(work);
    this.#barrier = done.then(
      () => nextTurn(),
      () => nextTurn(),
    );
    this.#queues.clear();
    return done;
  }
}

interface KeyQueue {
  last: Promise<unknown>;
  waiting: number;
}
