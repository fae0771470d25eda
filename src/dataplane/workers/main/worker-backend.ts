/** Workers as a `RelayBackend`: connections between two kernel sockets leave the event loop for good. */
import { availableParallelism } from "node:os";
import type { WorkerConnection } from "#core/accepted.ts";
import type { Meter } from "#core/meter.ts";
import type { Endpoint } from "#core/session.ts";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import { openPoller, type Poller } from "#platform/linux/uv-poll.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import type {
  RelayBackend,
  RelayBackendOptions,
  RelayOwner,
  RelayPair,
  RelayTimeouts,
  Resettable,
} from "#dataplane/backend.ts";
import type { DecisionSource, FoundDial } from "#dataplane/decision-source.ts";
import { AcceptDispatcher } from "./accept-dispatcher.ts";
import { Decisions } from "./decisions.ts";
import { handOver } from "./hand-over.ts";
import { cannotReturn, mustWait } from "./leaving.ts";
import { OffloadedFlow } from "./offloaded-flow.ts";
import { WorkerClient } from "./worker-connection.ts";
import { type QuicWorker, WorkerPool } from "./worker-pool.ts";

export interface WorkerBackendOptions {
  /** Of the main thread, which ends what a worker leaves of TLS. */
  readonly tlsLibrary: TlsLibrary;
  /** The kernel is about to bring connections to workers that did not ask for it. */
  readonly beforeCapture?: () => void;
  /** Default: one a core. */
  readonly threads?: number;
  /** Bytes that a connection moves before it is handed over; default: those of one large read. */
  readonly afterBytes?: number;
  /** A worker has died. Its connections are over; without workers every `relay` returns null. */
  readonly onDeath: (why: string, threadsLeft: number) => void;
  /** For tests: how long the seams of its threads last, see seams.ts. */
  readonly seams?: SharedArrayBuffer | undefined;
}

const AFTER_BYTES = 64 * 1024;

/** Reading rows and totals one after the other must not cause a walk each time. */
const FRESH_MS = 100;

/** Throws where this system cannot: the message says why. */
export async function openWorkerBackend(options: WorkerBackendOptions): Promise<WorkerBackend> {
  const calls = openRelayCalls();
  const poller = openPoller();
  if (calls === null || poller === null) {
    const what = process.platform === "linux" ? `${process.version} has no node:ffi` : process.platform;
    throw new Error(`worker threads need Linux and a runtime with node:ffi, this is ${what}`);
  }
  const engine = new WorkerBackend(calls, poller, options);
  await using undo = new AsyncDisposableStack();
  undo.use(engine);
  await engine.start(options.threads ?? availableParallelism());
  undo.move();
  return engine;
}

export class WorkerBackend implements RelayBackend, AsyncDisposable {
  readonly afterBytes: number;
  readonly accepting: AcceptDispatcher | null;
  readonly #calls: RelayCalls;
  readonly #decisions: Decisions;
  readonly #pool: WorkerPool;
  #lookedAtMs = 0;

  constructor(calls: RelayCalls, poller: Poller, options: WorkerBackendOptions) {
    const { afterBytes = AFTER_BYTES, beforeCapture, onDeath, seams, tlsLibrary } = options;
    this.#calls = calls;
    this.afterBytes = afterBytes;
    this.accepting = AcceptDispatcher.open(tlsLibrary, {
      threads: () => this.#pool.workers,
      beforeListen: () => this.invalidateDecisions(true),
      beforeCapture: () => beforeCapture?.(),
    });
    this.#decisions = new Decisions({
      rows: () => this.#pool.workers.filter(({ alive }) => alive).map(({ decided }) => decided),
      listeners: () => this.accepting?.decidable ?? [],
    });
    const { accepting } = this;
    const version = this.#decisions.word.memory;
    this.#pool = new WorkerPool({ calls, poller, tlsLibrary, version, accepting, onDeath, seams });
  }

  /** Once, before anything else. */
  start(count: number): Promise<void> {
    return this.#pool.start(count);
  }

  /** As `WorkerPool.openQuic` says. */
  openQuic(onDeath: (why: string) => void): Promise<QuicWorker> {
    return this.#pool.openQuic(onDeath);
  }

  /** Those that are alive. */
  get threads(): number {
    return this.#pool.size;
  }

  relay(pair: RelayPair, meter: Meter, options: RelayBackendOptions): Promise<void> | null {
    const thread = this.#pool.threadFor(pair.client);
    if (thread === null || options.signal.aborted || mustWait(pair, meter) || cannotReturn(pair)) return null;
    return handOver(pair, thread, meter, options, this.#calls);
  }

  resume(held: WorkerConnection, meter: Meter, timeouts: RelayTimeouts, owner: RelayOwner): Resettable {
    if (!(held instanceof WorkerClient)) throw new TypeError("a client of another engine");
    const flow = new OffloadedFlow(held.thread, meter, timeouts, owner);
    held.handOverTo(flow);
    flow.join(held.slot, held.takeBack);
    return flow;
  }

  decideBy(source: DecisionSource): void {
    this.#decisions.decideBy(source);
    this.joinDecided();
  }

  /** Connections that workers have decided are known to the main thread from now on. */
  joinDecided(): void {
    for (const thread of this.#pool.workers) thread.joinDecided();
  }

  /** The same for a reader: those that have ended are counted, too. */
  reportDecided(): void {
    for (const thread of this.#pool.all) thread.takeEvents();
    this.joinDecided();
  }

  /** What workers have decided, and dial or have dialled between these two; null: nothing. */
  findDecided(near: Endpoint, to: Endpoint): FoundDial | null {
    for (const thread of this.#pool.workers) {
      const found = thread.alive ? (this.accepting?.findDecided(thread, near, to) ?? null) : null;
      if (found !== null) return found;
    }
    return null;
  }

  /** What is decided by has changed, rules or lists among it unless `keepsRules`: no connection is decided by what it was before, and those that were are known. */
  invalidateDecisions(keepsRules = false): void {
    this.#decisions.invalidate(keepsRules);
    this.joinDecided();
  }

  /** Groups may pick others by what was measured. */
  checkDecisions(): void {
    this.#decisions.check();
  }

  /** Whether decisions are held back has changed. */
  holdDecisions(): void {
    this.#decisions.look();
  }

  /** For good: at the end of the program. */
  stopDeciding(): void {
    this.#decisions.stop();
    for (const thread of this.#pool.workers) thread.takeEvents();
    this.joinDecided();
    this.#decisions.dropAll();
  }

  /** Has every connection report its counts up to now, or up to `maxAgeMs` ago. */
  look(maxAgeMs = FRESH_MS): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < maxAgeMs) return;
    this.#lookedAtMs = nowMs;
    if (!this.#pool.takeMoved()) return;
    this.joinDecided();
    for (const thread of this.#pool.all) thread.look();
  }

  /** Resets the remaining connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stopDeciding();
    await this.#pool[Symbol.asyncDispose]();
  }
}
