/** The threads of the relay: those that accept, decide and relay, and those of QUIC. */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { Poller } from "#platform/linux/uv-poll.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import type { RelayEnd } from "#dataplane/backend.ts";
import { PENDING_BOUNDS } from "#dataplane/workers/shared/worker-data.ts";
import { itemAt } from "#lib/at.ts";
import type { AcceptDispatcher } from "./accept-dispatcher.ts";
import { makeFree } from "./orphans.ts";
import { WorkerHandle, type WorkerHandleOptions } from "./worker-handle.ts";

/** A thread of QUIC, of which this side knows the relay worker. */
export interface QuicWorker {
  /** For what `transport/quic/remote` says. */
  readonly port: MessagePort;
  readonly worker: object;
  /** Of its choice of a protocol, as `TlsContextSource.share` takes it. */
  readonly onAlpn: bigint;
  readonly hold: (change: 1 | -1) => void;
  readonly closeDescriptor: (fd: number) => void;
}

export interface WorkerPoolEnv {
  readonly calls: RelayCalls;
  readonly poller: Poller;
  /** Of the main thread, which ends what a worker leaves of TLS. */
  readonly tlsLibrary: TlsLibrary;
  /** Of a `VersionWord`. */
  readonly version: SharedArrayBuffer;
  /** Null: they accept nothing. */
  readonly accepting: AcceptDispatcher | null;
  /** As `WorkerBackendOptions` has them. */
  readonly onDeath: (why: string, threadsLeft: number) => void;
  readonly seams: SharedArrayBuffer | undefined;
}

/**
 * Of all threads together. An unprivileged user gets 64 pipes of this size from the system (pipe(7),
 * pipe-user-pages-soft); some are left to others.
 */
const PIPES = 56;

export class WorkerPool implements AsyncDisposable {
  readonly #env: WorkerPoolEnv;
  #workers: readonly WorkerHandle[] = [];
  /** They accept nothing and decide nothing, and relay streams of their own connections; with what is called at their end. */
  readonly #quic = new Map<WorkerHandle, (why: string) => void>();
  /** Of all threads together, when it was last asked for. */
  #turns = -1;
  /** The process cannot end while a thread sits in a system call. */
  readonly #onExit = (): void => {
    for (const thread of this.#workers) thread.stop();
    for (const thread of this.#quic.keys()) thread.stopAndWait();
  };

  constructor(env: WorkerPoolEnv) {
    this.#env = env;
  }

  /** Once, before anything else. */
  async start(count: number): Promise<void> {
    const options = this.#optionsFor(count);
    const opening = Array.from({ length: count }, () => WorkerHandle.open(options));
    const opened = await Promise.allSettled(opening);
    this.#workers = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    process.once("exit", this.#onExit);
    for (const one of opened) if (one.status === "rejected") throw one.reason;
  }

  /** One more thread of QUIC. `onDeath` is called when nothing of it runs any more. Rejects where it does not start. */
  async openQuic(onDeath: (why: string) => void): Promise<QuicWorker> {
    const { port1, port2 } = new MessageChannel();
    const worker = await WorkerHandle.open({
      ...this.#optionsFor(this.#workers.length),
      quic: port2,
      onDeath: (why, thread) => {
        this.#quic.delete(thread);
        this.#env.onDeath(why, this.size);
        onDeath(why);
      },
    });
    this.#quic.set(worker, onDeath);
    const hold = (change: 1 | -1): void => worker.holdProcess(change);
    const onAlpn = itemAt(worker.accepts.onAlpn, 0);
    return { port: port1, worker, onAlpn, hold, closeDescriptor: (fd) => this.#env.calls.close(fd) };
  }

  #optionsFor(count: number): WorkerHandleOptions {
    const { accepting, calls, onDeath, poller, seams, tlsLibrary, version } = this.#env;
    return {
      calls,
      poller,
      pipes: Math.floor(PIPES / (count + 1)),
      unauthenticated: { count: PENDING_BOUNDS.count / count, bytes: PENDING_BOUNDS.bytes / count },
      threads: count,
      version,
      free: makeFree(tlsLibrary),
      seams,
      onArrived: (thread, slot, kind) => accepting?.onEvent(thread, slot, kind),
      decidedClient: (thread, slot, ends) => {
        if (accepting === null) throw new Error("a worker has decided without accepting");
        return accepting.decidedClient(thread, slot, ends);
      },
      onServed: (thread, slot) => accepting?.onDecided(thread, slot),
      onUnlistened: (thread, listener) => accepting?.onListenerClosed(thread, listener),
      onDeath: (why, thread) => {
        onDeath(why, this.size);
        accepting?.died(thread);
      },
    };
  }

  /** Those that accept and decide, dead ones among them. */
  get workers(): readonly WorkerHandle[] {
    return this.#workers;
  }

  /** Of these, the ones that are alive. */
  get size(): number {
    return this.#workers.filter(({ alive }) => alive).length;
  }

  /** Those of QUIC among them. */
  get all(): readonly WorkerHandle[] {
    return [...this.#workers, ...this.#quic.keys()];
  }

  /** False: since it was asked last no thread has moved a byte or accepted a client. */
  takeMoved(): boolean {
    const turns = this.all.reduce((sum, { table }) => sum + table.turns, 0);
    const before = this.#turns;
    this.#turns = turns;
    return turns !== before;
  }

  /** For a connection with that client; null: none has room. A stream of QUIC can be gone on with in the thread of its connection alone. */
  threadFor({ detachable: { worker } }: RelayEnd): WorkerHandle | null {
    if (worker === undefined) return this.#leastBusy();
    const own = worker instanceof WorkerHandle && this.#quic.has(worker) ? worker : null;
    return own !== null && own.hasRoom ? own : null;
  }

  #leastBusy(): WorkerHandle | null {
    let best: WorkerHandle | null = null;
    for (const thread of this.#workers)
      if (thread.hasRoom && (best === null || thread.size < best.size)) best = thread;
    return best;
  }

  /** Resets the remaining connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#onExit);
    const ends = [...this.#quic.values()];
    await Promise.all(this.all.map((thread) => thread[Symbol.asyncDispose]()));
    for (const onEnd of ends) onEnd("the program ends");
  }
}
