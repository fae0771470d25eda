/**
 * A store that outlives its thread. One that ends by itself is started again: what was not acknowledged is refused, and
 * so is everything until the files have been opened and the owner goes by what they hold.
 */
import { messageOf, type StoreError } from "#core/errors.ts";
import type { CommitOptions } from "./backup.ts";
import type { Change } from "./kv.ts";
import {
  type LendableStore,
  type OpenedStore,
  type Snapshot,
  type SupervisedOptions,
  UnavailableError,
} from "./opened-store.ts";
import { type OpenedThread, openStoreThread, type StoreThread } from "./store-thread.ts";

const FIRST_DELAY_MS = 100;
/** Each time it waits so many times as long as the time before. */
const GROWTH = 4;
/** Opening decodes everything: thousands of users take seconds. */
const MOST_DELAY_MS = 60_000;
/** A thread that has run for so long has recovered: its next end counts as the first. */
const RECOVERED_MS = 60_000;

/** Rejects with what `Store.open` throws; from then on it is never given up before `close`. */
export async function openSupervisedStore(
  options: SupervisedOptions,
): Promise<OpenedStore & { readonly store: LendableStore }> {
  const { store, records } = await openStoreThread(options);
  return { store: new SupervisedStore(options, store), records };
}

class SupervisedStore implements LendableStore {
  readonly #options: SupervisedOptions;
  #thread: StoreThread | null;
  /** Why there is no thread. */
  #why = "";
  #isOver = false;
  #failures = 0;
  /** Another process has the files. */
  #isLent = false;
  /** Settles when there will be no other thread. */
  #kept: Promise<void>;
  #wakeUp: () => void = () => {};

  constructor(options: SupervisedOptions, thread: StoreThread) {
    this.#options = options;
    this.#thread = thread;
    this.#kept = this.#keepOpen(thread);
  }

  commit(changes: Iterable<Change>, options: CommitOptions): Promise<void> {
    return this.#thread?.commit(changes, options) ?? Promise.reject(this.#refusal());
  }

  compact(): Promise<void> {
    return this.#thread?.compact() ?? Promise.reject(this.#refusal());
  }

  snapshot(): Promise<Snapshot> {
    return this.#thread?.snapshot() ?? Promise.reject(this.#refusal());
  }

  async release(): Promise<void> {
    const thread = this.#thread;
    if (thread === null) throw this.#refusal();
    this.#thread = null;
    this.#why = "another process of weir is taking the file over";
    this.#isLent = true;
    try {
      await thread.close();
    } finally {
      await thread.ended;
      await this.#kept;
    }
  }

  async reclaim(): Promise<void> {
    if (!this.#isLent || this.#isOver) return;
    const thread = await this.#agreed(await openStoreThread(this.#options));
    this.#isLent = false;
    if (thread !== null) this.#kept = this.#keepOpen(thread);
  }

  async close(): Promise<void> {
    this.#end();
    if (this.#isLent) return;
    try {
      if (this.#thread === null) throw this.#refusal();
      await this.#thread.close();
    } finally {
      await this.#kept; // threads that are just coming or going may have the files
    }
  }

  closeNow(): void {
    this.#end();
    if (this.#isLent) return;
    if (this.#thread === null) throw this.#refusal();
    this.#thread.closeNow();
  }

  #end(): void {
    this.#isOver = true;
    this.#wakeUp();
  }

  #refusal(): UnavailableError {
    return new UnavailableError(`${this.#options.path}: nothing can be written at present: ${this.#why}`);
  }

  async #keepOpen(first: StoreThread): Promise<void> {
    for (let thread: StoreThread | null = first; thread !== null;) {
      const startedMs = performance.now();
      const death = await thread.ended;
      if (death === null || this.#isOver || this.#isLent) return; // the caller of close has the thread's own result
      if (performance.now() - startedMs >= RECOVERED_MS) this.#failures = 0;
      this.#thread = null;
      thread = await this.#openAgain(death);
    }
  }

  /** Null: closed meanwhile, or for good because the owner cannot go by what is there. */
  async #openAgain(death: StoreError): Promise<StoreThread | null> {
    const { log, path } = this.#options;
    for (let cause: unknown = death; !this.#isOver;) {
      const delayMs = Math.min(MOST_DELAY_MS, FIRST_DELAY_MS * GROWTH ** this.#failures++);
      this.#why = `${messageOf(cause)}; it is being opened again`;
      log.error(
        `${messageOf(cause)}; ${path} is opened again in ${delayMs / 1000} s, no change is taken before`,
      );
      await this.#pause(delayMs);
      if (this.#isOver) return null;
      try {
        return await this.#agreed(await openStoreThread(this.#options));
      } catch (error) {
        cause = error;
      }
    }
    return null;
  }

  /** The opened store, when its owner goes by what is in it. */
  async #agreed({ store, records }: OpenedThread): Promise<StoreThread | null> {
    const { agree, log, path } = this.#options;
    try {
      await agree?.(records);
    } catch (error) {
      this.#why = `what is in the file contradicts what has been acknowledged: ${messageOf(error)}`;
      log.error(`${path}: no change is taken until the program is started again: ${this.#why}`);
      await store.close();
      return null;
    }
    if (this.#isOver) {
      await store.close();
      return null;
    }
    log.warning(`${path}: open again`);
    this.#thread = store;
    return store;
  }

  #pause(delayMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, delayMs).unref();
    this.#wakeUp = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }
}
