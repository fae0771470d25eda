import type { Endpoint, Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { FoundDial } from "#dataplane/decision-source.ts";
import type { AcceptOffload, OffloadedListener, OffloadOptions } from "#net/listen/accept-offload.ts";
import { openAcceptCalls, type AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { CLOSED, DRAINS, LISTENERS, MOST_PATH_BYTES, OPEN } from "#dataplane/workers/shared/accept-memory.ts";
import { listenerOf, OF_SESSION } from "#dataplane/workers/shared/slot-tag.ts";
import { LISTEN, REQUESTED, UNLISTEN } from "#dataplane/workers/shared/opcodes.ts";
import { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import { int32At } from "#lib/at.ts";
import { ArrivedClients } from "./arrived-clients.ts";
import type { DecidedEnds } from "./decided-rows.ts";
import { CAPTURING, decidableBy, type DecidableListener } from "./decidable-listener.ts";
import { handshakeOf, nameOf, upgradePathOf, type Listener } from "./offloaded-listener.ts";
import { dialledFrom } from "./slot-socket.ts";
import { WorkerTlsContexts } from "./tls-contexts.ts";
import { WorkerClient, type WorkerClientEnv } from "./worker-connection.ts";
import type { WorkerHandle } from "./worker-handle.ts";

interface DispatcherEnv {
  readonly threads: () => readonly WorkerHandle[];
  /** Called before workers accept the connections of one more listener. */
  readonly beforeListen: () => void;
  /** Called before that, where the kernel brings connections to it. */
  readonly beforeCapture: () => void;
}

/** Listeners whose clients are accepted by workers, each by all of them. */
export class AcceptDispatcher implements AcceptOffload {
  readonly #calls: AcceptCalls;
  readonly #env: DispatcherEnv;
  readonly #connectionEnv: WorkerClientEnv;
  readonly #clients: ArrivedClients;
  readonly #listeners: (Listener | null)[] = [];

  private constructor(calls: AcceptCalls, tlsLibrary: TlsLibrary, env: DispatcherEnv) {
    this.#calls = calls;
    this.#connectionEnv = { calls, sockaddrs: new Sockaddrs(), tlsLibrary };
    this.#clients = new ArrivedClients(this.#connectionEnv);
    this.#env = env;
  }

  /** Null where the system cannot. */
  static open(tlsLibrary: TlsLibrary, env: DispatcherEnv): AcceptDispatcher | null {
    const calls = openAcceptCalls();
    return calls === null ? null : new AcceptDispatcher(calls, tlsLibrary, env);
  }

  /** By number of the listener; null: workers cannot decide its connections. */
  get decidable(): readonly (DecidableListener | null)[] {
    return this.#listeners.map((listener) => (listener === null ? null : decidableBy(listener.options)));
  }

  duplicate(fd: number): number {
    return this.#calls.duplicate(fd);
  }

  close(fd: number): void {
    this.#calls.close(fd);
  }

  listen(fd: number, options: OffloadOptions): OffloadedListener | null {
    const open = new Set(this.#env.threads().filter(({ alive }) => alive));
    const number = this.#freeNumber();
    const canBegin =
      handshakeOf(options) >= 0 && Buffer.byteLength(upgradePathOf(options)) <= MOST_PATH_BYTES;
    if (open.size === 0 || number === null || !canBegin) return null;
    const contexts =
      options.handshake === "tls" ? WorkerTlsContexts.open(options.contexts, number, open) : null;
    if (options.handshake === "tls" && contexts === null) return null;
    const own = this.#calls.duplicate(fd);
    if (own < 0) {
      contexts?.close();
      return null;
    }
    this.#prepare(own, options);
    const name = nameOf(own, this.#calls, this.#connectionEnv.sockaddrs);
    const listener: Listener = { options, open, contexts, ...name, done: Promise.withResolvers<void>() };
    this.#begin(number, own, listener);
    return { stop: (drains) => this.#stop(number, listener, drains) };
  }

  /** `own` is a descriptor of ours, closed when no client of it can come any more. */
  #begin(number: number, own: number, listener: Listener): void {
    const { options, open, contexts, done } = listener;
    this.#listeners[number] = listener;
    if (CAPTURING.has(options.handshake)) this.#env.beforeCapture();
    this.#env.beforeListen(); // its number may have been another's
    void done.promise.then(() => {
      this.#listeners[number] = null;
      contexts?.close();
      this.#calls.close(own);
    });
    for (const thread of open) {
      thread.accepts.listeners[number] = own;
      thread.accepts.handshakes[number] = handshakeOf(options);
      thread.accepts.setUpgradePath(number, upgradePathOf(options));
      Atomics.store(thread.accepts.states, number, OPEN);
      thread.holdProcess(1);
      if (options.handshake === "reality") thread.post(options.rules);
      thread.command(number, LISTEN);
    }
  }

  #stop(number: number, { open, done }: Listener, drains: boolean): Promise<void> {
    for (const thread of open) {
      Atomics.store(thread.accepts.states, number, drains ? DRAINS : CLOSED);
      thread.command(number, UNLISTEN);
    }
    return done.promise;
  }

  #freeNumber(): number | null {
    for (let number = 0; number < LISTENERS; number++) if (!this.#listeners[number]) return number;
    return null;
  }

  /** What is set of a listening socket its connections are born with. */
  #prepare(fd: number, { probes }: OffloadOptions): void {
    this.#calls.noDelay(fd);
    this.#calls.delayAcknowledgements(fd);
    if (probes === null) this.#calls.noKeepAlive(fd);
    else this.#calls.keepAlive(fd, wholeSeconds(probes.idleMs), wholeSeconds(probes.intervalMs));
  }

  /** For a client that a worker has decided and connected. */
  decidedClient(thread: WorkerHandle, slot: number, ends: DecidedEnds): WorkerClient {
    this.onDecided(thread, slot);
    return WorkerClient.decided(thread, slot, ends, this.#connectionEnv);
  }

  /** As `AcceptCalls` has it. */
  mayBeOwn(ip: Ip): boolean {
    return this.#calls.mayBeOwn(bytesOfIp(ip));
  }

  /** What the thread has decided, and dials or has dialled between these two; null: nothing. */
  findDecided({ decided, table, atSeam }: WorkerHandle, near: Endpoint, to: Endpoint): FoundDial | null {
    return decided.find(near, to, (slot) => dialledFrom(slot, { table, atSeam }, this.#connectionEnv));
  }

  // For the threads.

  onEvent(thread: WorkerHandle, slot: number, kind: number): void {
    const word = int32At(thread.accepts.tags, slot);
    if (kind === REQUESTED && (word & OF_SESSION) !== 0) this.#clients.onStream(thread, slot);
    else this.#clients.onEvent(thread, slot, kind, this.#listeners[listenerOf(word)] ?? null);
  }

  /** One that a worker has decided has become known; it may have been another listener's with the same number. */
  onDecided({ accepts }: WorkerHandle, slot: number): void {
    this.#listeners[listenerOf(int32At(accepts.tags, slot))]?.options.onDecided?.();
  }

  /** The thread has said so, or it is dead. */
  onListenerClosed(thread: WorkerHandle, number: number): void {
    const listener = this.#listeners[number] ?? null;
    if (listener === null || !listener.open.delete(thread)) return;
    listener.contexts?.left(thread);
    thread.holdProcess(-1);
    if (listener.open.size === 0) listener.done.resolve();
  }

  died(thread: WorkerHandle): void {
    for (const number of this.#listeners.keys()) this.onListenerClosed(thread, number);
  }
}
