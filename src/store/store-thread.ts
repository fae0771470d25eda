/** A store in two threads of its own, one a file: a commit waits for the medium, the event loop does not. */
import { MessageChannel, type Worker } from "node:worker_threads";
import { messageOf, StoreError } from "#core/errors.ts";
import { openThread } from "#platform/thread.ts";
import type { CommitOptions } from "./backup.ts";
import type { StoreOptions } from "./store-options.ts";
import type { Change } from "./kv.ts";
import {
  InterruptedError,
  type OpenedStore,
  type Snapshot,
  type SnapshotStore,
  UnavailableError,
} from "./opened-store.ts";
import { LINK_BYTES } from "./second-file.ts";
import {
  errorOf,
  type SecondThreadData,
  type StoreReply,
  type StoreRequest,
  type StoreThreadData,
} from "./thread-messages.ts";

/** A caller of commit waits for its answer, so few are queued; beyond this a caller is refused. */
const MOST_WAITING = 1024;
/** What the end of the program waits for a medium that does not answer. */
const MOST_END_MS = 5_000;
/** Batches are small and soon garbage. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 8 };

export interface OpenedThread extends OpenedStore {
  readonly store: StoreThread;
}

/** Rejects with what `Store.open` throws, after it has let go of the files. */
export function openStoreThread(options: StoreOptions): Promise<OpenedThread> {
  const opened = Promise.withResolvers<OpenedThread>();
  const thread: StoreThread = new StoreThread(options, (outcome) => {
    if (!(outcome instanceof Error)) opened.resolve({ store: thread, records: outcome });
    else void thread.ended.then(() => opened.reject(outcome));
  });
  return opened.promise;
}

type Records = OpenedStore["records"];

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Ends with its thread, however that comes to its end. What keeps a store open beyond that is steady-store.ts. */
export class StoreThread implements SnapshotStore {
  readonly #options: StoreOptions;
  readonly #worker: Worker;
  readonly #second: Worker;
  readonly #waiting: Waiting[] = [];
  /** Come, and not fetched by who asked for them. */
  readonly #snapshots: Snapshot[] = [];
  readonly #end = new SharedArrayBuffer(4);
  readonly #ended = Promise.withResolvers<StoreError | null>();
  readonly #onOpened: (outcome: Records | Error) => void;
  #isOver = false;
  /** Why it ended by itself. */
  #death: StoreError | null = null;

  /**
   * `onOpened` is called with the contents of the store, or once or more with the reason why it could not be opened.
   */
  constructor(options: StoreOptions, onOpened: (outcome: Records | Error) => void) {
    this.#options = options;
    this.#onOpened = onOpened;
    const { path, parts, nowMs, isMarked = false } = options;
    const { port1, port2 } = new MessageChannel();
    const words = new SharedArrayBuffer(LINK_BYTES);
    const shared = { path, parts };
    const first = { port: port1, words };
    this.#worker = started("store", {
      role: "first",
      ...shared,
      link: first,
      nowMs: nowMs(),
      isMarked,
      end: this.#end,
    });
    this.#second = started("store-second", { role: "second", ...shared, link: { port: port2, words } });
    this.#second.unref(); // the first thread keeps the process alive when there is work
    for (const worker of [this.#worker, this.#second])
      worker.on("error", (error) => this.#die(messageOf(error)));
    void this.#watch();
    this.#worker.on("message", (reply: StoreReply) => {
      if (reply.kind === "log") options.log[reply.level](reply.text);
      else if (reply.kind === "healed") options.events?.healed(reply.file);
      else if (reply.kind === "done") this.#answer(reply.failure === null ? null : errorOf(reply.failure));
      else {
        const records = new Map([...reply.records].map(([part, all]) => [part, all.map(asBuffer)] as const));
        if (reply.kind === "snapshot") {
          this.#snapshots.push(records);
          return;
        }
        this.#worker.unref();
        this.#onOpened(records);
      }
    });
  }

  /** Resolves when the files have been let go of: null after `close`, otherwise why the thread ended. */
  get ended(): Promise<StoreError | null> {
    return this.#ended.promise;
  }

  async commit(changes: Iterable<Change>, { backup }: CommitOptions): Promise<void> {
    // Copied: behind a view of the runtime's pool its neighbours would travel, too.
    const own = Array.from(changes, (change) => ({
      ...change,
      value: change.value === null ? null : new Uint8Array(change.value),
    }));
    await this.#ask({ kind: "commit", changes: own, backup, nowMs: this.#options.nowMs() });
  }

  compact(): Promise<void> {
    return this.#ask({ kind: "compact" });
  }

  async snapshot(): Promise<Snapshot> {
    await this.#ask({ kind: "snapshot" });
    const snapshot = this.#snapshots.shift();
    if (snapshot === undefined) throw new StoreError(`${this.#options.path}: it could not be read`);
    return snapshot;
  }

  close(): Promise<void> {
    const closed = this.#ask({ kind: "close" });
    this.#isOver = true;
    return closed;
  }

  closeNow(): void {
    if (this.#death !== null) throw this.#death;
    void this.close().catch(() => {}); // no answer is expected any more
    if (Atomics.wait(new Int32Array(this.#end), 0, 0, MOST_END_MS) === "timed-out")
      throw new StoreError(`${this.#options.path}: the medium does not answer`);
  }

  #ask(request: StoreRequest): Promise<void> {
    const { path } = this.#options;
    if (this.#death !== null) return Promise.reject(new UnavailableError(this.#death.message));
    if (this.#isOver) return Promise.reject(new StoreError(`${path}: the store is closed`));
    if (this.#waiting.length >= MOST_WAITING)
      return Promise.reject(new StoreError(`${path}: ${MOST_WAITING} changes wait already`));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ resolve, reject });
    this.#worker.ref(); // a caller waits
    this.#worker.postMessage(request);
    return promise;
  }

  #answer(failure: Error | null): void {
    const first = this.#waiting.shift();
    // After a refused opening and after the last answer, the end of the threads is awaited.
    if (this.#waiting.length === 0 && first !== undefined && !this.#isOver) this.#worker.unref();
    if (failure === null) first?.resolve();
    else if (first !== undefined) first.reject(failure);
    else this.#onOpened(failure); // of the opening
  }

  /** Neither has an event loop that could see the end of the other. */
  async #watch(): Promise<void> {
    const second = exitOf(this.#second).then(async (code) => {
      if (code !== 0) await this.#worker.terminate();
    });
    await exitOf(this.#worker);
    this.#die("it has ended");
    await this.#second.terminate(); // it can no longer be told to close its file
    await second;
    this.#ended.resolve(this.#death);
  }

  #die(why: string): void {
    const error = new InterruptedError(`${this.#options.path}: the store's thread: ${why}`);
    if (!this.#isOver) this.#death = error;
    this.#isOver = true;
    this.#onOpened(error);
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}

function started(name: string, data: StoreThreadData | SecondThreadData): Worker {
  const about = { name, stdin: false, resourceLimits: RESOURCE_LIMITS };
  const options = { ...about, workerData: data, transferList: [data.link.port] };
  return openThread({ from: import.meta.url, source: "worker.ts", built: "store-thread" }, options);
}

function exitOf(worker: Worker): Promise<number> {
  return new Promise((resolve) => worker.once("exit", resolve));
}

function asBuffer([key, { buffer, byteOffset, byteLength }]: readonly [string, Uint8Array]) {
  return [key, Buffer.from(buffer, byteOffset, byteLength)] as const;
}
