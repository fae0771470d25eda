/** Workers as a `RelayBackend`: connections between two kernel sockets leave the event loop for good. */
import { availableParallelism } from "node:os";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { descriptorOf } from "#core/handover.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import type { Direction, Meter } from "#core/meter.ts";
import type { Endpoint } from "#core/session.ts";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import { openPoller, type Poller } from "#platform/linux/uv-poll.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import type {
  RelayBackend,
  RelayBackendOptions,
  RelayEnd,
  RelayOwner,
  RelayPair,
  RelayTimeouts,
  Resettable,
} from "#dataplane/backend.ts";
import { OffloadedFlow } from "./offloaded-flow.ts";
import { CLIENT, type Side } from "#dataplane/workers/shared/sides.ts";
import { PENDING_BOUNDS } from "#dataplane/workers/shared/worker-data.ts";
import type { DecisionSource, FoundDial } from "#dataplane/decision-source.ts";
import { AcceptDispatcher } from "./accept-dispatcher.ts";
import { Decisions } from "./decisions.ts";
import {
  bareSideOf,
  canLeave,
  cannotReturn,
  deliver,
  depart,
  giveBack,
  mustWait,
  shellOf,
} from "./leaving.ts";
import { itemAt } from "#lib/at.ts";
import { makeFree } from "./orphans.ts";
import { WorkerClient } from "./worker-connection.ts";
import { WorkerHandle, type WorkerHandleOptions } from "./worker-handle.ts";
import { socketOf } from "./socket-of.ts";

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

/**
 * Of all threads together. An unprivileged user gets 64 pipes of this size from the system (pipe(7),
 * pipe-user-pages-soft); some are left to others.
 */
const PIPES = 56;

const AFTER_BYTES = 64 * 1024;

/** Reading rows and totals one after the other must not cause a walk each time. */
const FRESH_MS = 100;

/** Throws where this system cannot: the message says why. */
export async function openWorkerBackend(options: WorkerBackendOptions): Promise<WorkerBackend> {
  const calls = openRelayCalls();
  const poller = openPoller();
  if (calls === null || poller === null) {
    const what = process.platform === "linux" ? `${process.version} has no node:ffi` : process.platform;
    throw new Error(`needs Linux and a runtime with node:ffi, this is ${what}`);
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
  readonly #poller: Poller;
  readonly #options: WorkerBackendOptions;
  readonly #decisions: Decisions;
  #threads: readonly WorkerHandle[] = [];
  /** They accept nothing and decide nothing, and relay streams of their own connections; with what is called at their end. */
  readonly #quic = new Map<WorkerHandle, (why: string) => void>();
  #lookedAtMs = 0;
  /** Of all threads together. */
  #lookedAtTurns = -1;
  /** The process cannot end while a thread sits in a system call. */
  readonly #onExit = (): void => {
    for (const thread of this.#threads) thread.stop();
    for (const thread of this.#quic.keys()) thread.stopAndWait();
  };

  constructor(calls: RelayCalls, poller: Poller, options: WorkerBackendOptions) {
    this.#calls = calls;
    this.#poller = poller;
    this.#options = options;
    this.accepting = AcceptDispatcher.open(options.tlsLibrary, {
      threads: () => this.#threads,
      beforeListen: () => this.invalidateDecisions(true),
      beforeCapture: () => options.beforeCapture?.(),
    });
    this.#decisions = new Decisions({
      rows: () => this.#threads.filter(({ alive }) => alive).map(({ decided }) => decided),
      listeners: () => this.accepting?.decidable ?? [],
    });
    this.afterBytes = options.afterBytes ?? AFTER_BYTES;
  }

  /** Once, before anything else. */
  async start(count: number): Promise<void> {
    const options = this.#optionsFor(count);
    const opening = Array.from({ length: count }, () => WorkerHandle.open(options));
    const opened = await Promise.allSettled(opening);
    this.#threads = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    process.once("exit", this.#onExit);
    for (const one of opened) if (one.status === "rejected") throw one.reason;
  }

  /**
   * One more thread of QUIC. `onDeath` is called when nothing of it runs any more. Rejects where it does not start.
   */
  async openQuic(onDeath: (why: string) => void): Promise<QuicWorker> {
    const { port1, port2 } = new MessageChannel();
    const worker = await WorkerHandle.open({
      ...this.#optionsFor(this.#threads.length),
      quic: port2,
      onDeath: (why, thread) => {
        this.#quic.delete(thread);
        this.#options.onDeath(why, this.threads);
        onDeath(why);
      },
    });
    this.#quic.set(worker, onDeath);
    const hold = (change: 1 | -1): void => worker.holdProcess(change);
    const onAlpn = itemAt(worker.accepts.onAlpn, 0);
    return { port: port1, worker, onAlpn, hold, closeDescriptor: (fd) => this.#calls.close(fd) };
  }

  #optionsFor(count: number): WorkerHandleOptions {
    return {
      calls: this.#calls,
      poller: this.#poller,
      pipes: Math.floor(PIPES / (count + 1)),
      unauthenticated: { count: PENDING_BOUNDS.count / count, bytes: PENDING_BOUNDS.bytes / count },
      threads: count,
      version: this.#decisions.word.memory,
      free: makeFree(this.#options.tlsLibrary),
      seams: this.#options.seams,
      onArrived: (thread, slot, kind) => this.accepting?.onEvent(thread, slot, kind),
      decidedClient: (thread, slot, ends) => {
        if (this.accepting === null) throw new Error("a worker has decided without accepting");
        return this.accepting.decidedClient(thread, slot, ends);
      },
      onServed: (thread, slot) => this.accepting?.onDecided(thread, slot),
      onUnlistened: (thread, listener) => this.accepting?.onListenerClosed(thread, listener),
      onDeath: (why, thread) => {
        this.#options.onDeath(why, this.threads);
        this.accepting?.died(thread);
      },
    };
  }

  get #all(): readonly WorkerHandle[] {
    return [...this.#threads, ...this.#quic.keys()];
  }

  /** Those that are alive. */
  get threads(): number {
    return this.#threads.filter(({ alive }) => alive).length;
  }

  relay(pair: RelayPair, meter: Meter, options: RelayBackendOptions): Promise<void> | null {
    const { client, remote } = pair;
    const thread = this.#threadFor(client);
    if (thread === null || options.signal.aborted || mustWait(pair, meter) || cannotReturn(pair)) return null;
    const near = this.#descriptorOf(client);
    const isMissing = near < 0 && client.detachable.kind !== "quic";
    const far = isMissing ? -1 : this.#descriptorOf(remote);
    if (far < 0) return this.#giveUp(client, near);
    deliver(client, remote, (bytes) => count(meter, options, "upload", bytes));
    deliver(remote, client, (bytes) => count(meter, options, "download", bytes));
    // Bytes that the kernel did not take at once stay with the streams, and so does the connection.
    if (!canLeave(client) || !canLeave(remote)) {
      this.#giveUp(remote, far);
      return this.#giveUp(client, near);
    }
    return this.#start(thread, pair, [near, far], meter, options);
  }

  #start(
    thread: WorkerHandle,
    pair: RelayPair,
    [near, far]: readonly [number, number],
    meter: Meter,
    options: RelayBackendOptions,
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { client, remote } = pair;
    const { onBytes, onSilent, signal } = options;
    // The closure below lives as long as the connection, of which there are thousands: it keeps only this.
    const bareSide = bareSideOf(pair);
    const resume = bareSide === null ? undefined : pair.resume;
    const backs = [client.detachable.reattach, remote.detachable.reattach];
    const left = [shellOf(client), shellOf(remote)];
    const onGone = (): void => flow.reset();
    const onEnded = (): void => {
      signal.removeEventListener("abort", onGone);
      for (const stream of left) stream?.off("close", onGone);
      const socket = bareSide === null ? null : socketOf(flow.takeOpenDescriptor(bareSide), this.#calls);
      if (socket === null) for (const stream of left) stream?.destroy();
      for (const [side, takeBack] of backs.entries())
        if (takeBack !== undefined) giveBack(flow, side as Side, takeBack);
      if (socket === null) resolve();
      else resume?.(bareSide === CLIENT ? { client: socket } : { remote: socket });
    };
    const flow = new OffloadedFlow(thread, meter, options, { onBytes, onSilent, onEnded });
    for (const stream of left) stream?.once("close", onGone);
    flow.start(depart(client, near), depart(remote, far));
    signal.addEventListener("abort", onGone);
    return promise;
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

  /** The same for a reader: those that have ended are counted, too. */
  reportDecided(): void {
    for (const thread of this.#all) thread.takeEvents();
    this.joinDecided();
  }

  /** Connections that workers have decided are known to the main thread from now on. */
  joinDecided(): void {
    for (const thread of this.#threads) thread.joinDecided();
  }

  /** What workers have decided, and dial or have dialled between these two; null: nothing. */
  findDecided(near: Endpoint, to: Endpoint): FoundDial | null {
    for (const thread of this.#threads) {
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
    for (const thread of this.#threads) thread.takeEvents();
    this.joinDecided();
    this.#decisions.dropAll();
  }

  /** Has every connection report its counts up to now, or up to `maxAgeMs` ago. */
  look(maxAgeMs = FRESH_MS): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < maxAgeMs) return;
    this.#lookedAtMs = nowMs;
    const turns = this.#all.reduce((sum, { table }) => sum + table.turns, 0);
    if (turns === this.#lookedAtTurns) return; // no worker has moved a byte or accepted a client
    this.#lookedAtTurns = turns;
    this.joinDecided();
    for (const thread of this.#all) thread.look();
  }

  /** A stream of QUIC can be gone on with in the thread of its connection alone. */
  #threadFor({ detachable: { worker } }: RelayEnd): WorkerHandle | null {
    if (worker === undefined) return this.#leastBusy();
    const own = worker instanceof WorkerHandle && this.#quic.has(worker) ? worker : null;
    return own !== null && own.hasRoom ? own : null;
  }

  #leastBusy(): WorkerHandle | null {
    let best: WorkerHandle | null = null;
    for (const thread of this.#threads)
      if (thread.hasRoom && (best === null || thread.size < best.size)) best = thread;
    return best;
  }

  /** The thread's own; -1 where none is left. */
  #descriptorOf({ detachable: { socket } }: RelayEnd): number {
    return typeof socket === "number" ? socket : this.#calls.duplicate(descriptorOf(socket));
  }

  #giveUp({ detachable: { socket } }: RelayEnd, fd: number): null {
    if (fd >= 0 && typeof socket !== "number") this.#calls.close(fd);
    return null;
  }

  /** Resets the remaining connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#onExit);
    this.stopDeciding();
    const ends = [...this.#quic.values()];
    await Promise.all(this.#all.map((thread) => thread[Symbol.asyncDispose]()));
    for (const onEnd of ends) onEnd("the program ends");
  }
}

function count(meter: Meter, { onBytes }: RelayBackendOptions, direction: Direction, bytes: number): void {
  onBytes(direction, bytes);
  meter.adjust(direction, bytes);
}
