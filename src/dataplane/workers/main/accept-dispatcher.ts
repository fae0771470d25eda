import type { Endpoint, Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { FoundDial } from "#dataplane/decision-source.ts";
import {
  type AcceptOffload,
  NOT_ANSWERED,
  type OffloadedListener,
  type OffloadOptions,
} from "#net/listen/accept-offload.ts";
import { openAcceptCalls, type AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { isWildcard } from "#platform/linux/sockaddr.ts";
import { WorkerTlsContexts } from "./tls-contexts.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import {
  CLOSED,
  DRAINS,
  repliedBytesOf,
  LISTENERS,
  listenerOf,
  MOST_PATH_BYTES,
  OF_SESSION,
  OPEN,
  requestSlotOf,
  SESSION_BYTES,
  switchedOf,
} from "#dataplane/workers/shared/accept-memory.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import type { DecidedEnds } from "./decided-rows.ts";
import type { DecidableListener } from "./decisions.ts";
import { dialledFrom, socketOfSlot } from "./slot-socket.ts";
import { type WorkerClientEnv, WorkerClient } from "./worker-connection.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { LeftRecords } from "./left-records.ts";
import { TlsAcceptedSocket, takeHandshake } from "./tls-accepted.ts";
import { LEFT, LISTEN, REQUESTED, TLS_ACCEPTED, UNLISTEN } from "#dataplane/workers/shared/relay-memory.ts";
import { socketOf } from "./socket-of.ts";
import { int32At } from "#lib/at.ts";

/** The kernel brings connections there that did not ask for it. */
const CAPTURING: ReadonlySet<string> = new Set(["redirected", "transparent"]);
/** Handshakes that say the destination. */
const DECIDABLE: ReadonlySet<string> = new Set(["mixed", "socks", "http", ...CAPTURING]);

interface Listener {
  readonly options: OffloadOptions;
  /** Workers from which clients may still come. */
  readonly open: Set<WorkerHandle>;
  /** What its clients' handshakes are done by; null: they begin without TLS. */
  readonly contexts: WorkerTlsContexts | null;
  /** Its own address. */
  readonly local: Endpoint;
  /** That is where all its clients come to, too. */
  readonly isBound: boolean;
  readonly done: PromiseWithResolvers<void>;
}

function decidableBy(options: OffloadOptions): DecidableListener | null {
  const { context = null } = options;
  const { destination = null } = options.handshake === "none" ? options : {};
  const isKnown = destination !== null || DECIDABLE.has(options.handshake);
  return context !== null && isKnown ? { context, destination } : null;
}

/** Empty: its clients ask for no switch, or the event loop answers them. */
function upgradePathOf(options: OffloadOptions): string {
  const shows = options.handshake === "first-bytes" || (options.handshake === "tls" && options.showsFirst);
  return shows === true ? (options.upgradePath ?? "") : "";
}

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
  readonly #tlsLibrary: TlsLibrary;
  readonly #env: DispatcherEnv;
  readonly #connectionEnv: WorkerClientEnv;
  readonly #listeners: (Listener | null)[] = [];

  private constructor(calls: AcceptCalls, tlsLibrary: TlsLibrary, env: DispatcherEnv) {
    this.#calls = calls;
    this.#tlsLibrary = tlsLibrary;
    this.#connectionEnv = { calls, sockaddrs: new Sockaddrs(), tlsLibrary };
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
    const threads = this.#env.threads().filter(({ alive }) => alive);
    const number = this.#freeNumber();
    const showsFirst = options.handshake === "tls" && options.showsFirst === true;
    const begins = showsFirst ? "tls-first-bytes" : options.handshake;
    const handshake = HANDSHAKES.findIndex((one) => one === begins);
    const path = upgradePathOf(options);
    const canBegin = handshake >= 0 && Buffer.byteLength(path) <= MOST_PATH_BYTES;
    if (threads.length === 0 || number === null || !canBegin) return null;
    const open = new Set(threads);
    const contexts =
      options.handshake === "tls" ? WorkerTlsContexts.open(options.contexts, number, open) : null;
    if (options.handshake === "tls" && contexts === null) return null;
    const own = this.#calls.duplicate(fd);
    if (own < 0) {
      contexts?.close();
      return null;
    }
    this.#prepare(own, options);
    const done = Promise.withResolvers<void>();
    const listener: Listener = { options, open, contexts, ...this.#nameOf(own), done };
    this.#listeners[number] = listener;
    if (CAPTURING.has(options.handshake)) this.#env.beforeCapture();
    this.#env.beforeListen(); // its number may have been another's
    void done.promise.then(() => {
      this.#listeners[number] = null;
      contexts?.close();
      this.#calls.close(own);
    });
    for (const thread of threads) {
      thread.accepts.listeners[number] = own;
      thread.accepts.handshakes[number] = handshake;
      thread.accepts.setUpgradePath(number, path);
      Atomics.store(thread.accepts.states, number, OPEN);
      thread.holdProcess(1);
      if (options.handshake === "reality") thread.post(options.rules);
      thread.command(number, LISTEN);
    }
    return {
      stop: (drains) => {
        for (const thread of listener.open) {
          Atomics.store(thread.accepts.states, number, drains ? DRAINS : CLOSED);
          thread.command(number, UNLISTEN);
        }
        return listener.done.promise;
      },
    };
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

  /** One that a worker has decided has become known; it may have been another listener's with the same number. */
  onDecided({ accepts }: WorkerHandle, slot: number): void {
    this.#listeners[listenerOf(int32At(accepts.tags, slot))]?.options.onDecided?.();
  }

  #nameOf(fd: number): { local: Endpoint; isBound: boolean } {
    const isKnown = this.#calls.localName(fd) >= 0;
    const { address } = this.#calls;
    return { local: this.#connectionEnv.sockaddrs.local(address), isBound: isKnown && !isWildcard(address) };
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

  // For the threads.

  onEvent(thread: WorkerHandle, slot: number, kind: number): void {
    const word = int32At(thread.accepts.tags, slot);
    if (kind === REQUESTED && (word & OF_SESSION) !== 0) return this.#onStream(thread, slot);
    const listener = this.#listeners[listenerOf(word)] ?? null;
    if (kind === TLS_ACCEPTED) return this.#onTlsAccepted(thread, slot, listener);
    if (kind === LEFT) return this.#onLeft(thread, slot, listener);
    const options = listener?.options ?? null;
    if (options !== null && kind === REQUESTED) {
      const client = WorkerClient.asking(thread, slot, options, this.#connectionEnv);
      thread.track(slot, client);
      try {
        options.onAccepted(client);
      } catch (error) {
        client.reset(); // a fault costs only this client
        throw error;
      }
      return;
    }
    thread.track(slot, null);
    const socket = socketOfSlot(thread, slot, 0, this.#calls);
    if (options === null) socket.destroy();
    else options.onSocket(socket, { repliedBytes: repliedBytesOf(word), switched: switchedOf(word) });
  }

  /** In the session of a client that the thread keeps. */
  #onStream(thread: WorkerHandle, slot: number): void {
    const { accepts } = thread;
    const request = accepts.request(requestSlotOf(int32At(accepts.tags, slot)));
    const session = thread.ownerOf(request.readUInt32BE());
    if (!(session instanceof WorkerClient)) throw new TypeError("a stream without a session");
    const stream = WorkerClient.ofSession(
      session,
      slot,
      request.subarray(SESSION_BYTES),
      this.#connectionEnv,
    );
    thread.track(slot, stream);
    try {
      if (!session.takeStream(stream)) stream.reset();
    } catch (error) {
      stream.reset(); // a fault costs only this stream
      throw error;
    }
  }

  #onTlsAccepted(thread: WorkerHandle, slot: number, listener: Listener | null): void {
    const source = this.#connectionEnv.sockaddrs.source(thread.accepts.source(slot));
    const tlsAccepted = takeHandshake(thread, slot, this.#tlsLibrary);
    const { fd, ssl } = tlsAccepted;
    const options = listener?.options;
    if (fd >= 0 && ssl === 0n) {
      const socket = socketOf(fd, this.#calls);
      if (options === undefined) socket?.destroy();
      else if (socket !== null) options.onSocket(socket, NOT_ANSWERED);
      return;
    }
    const local = listener === null || listener.isBound || fd < 0 ? listener?.local : this.#nameOf(fd).local;
    const env = { calls: this.#calls, tlsLibrary: this.#tlsLibrary };
    const client = new TlsAcceptedSocket(tlsAccepted, source, local ?? source, env);
    if (options === undefined) return client.destroy();
    try {
      options.onAccepted(client);
    } catch (error) {
      client.destroy(); // a fault costs only this client
      throw error;
    }
  }

  #onLeft(thread: WorkerHandle, slot: number, listener: Listener | null): void {
    const source = this.#connectionEnv.sockaddrs.source(thread.accepts.source(slot));
    const left = thread.takeLeft(slot * 2);
    const { descriptors } = thread.table;
    const [fd, far] = [int32At(descriptors, slot * 2), int32At(descriptors, slot * 2 + 1)];
    descriptors[slot * 2] = descriptors[slot * 2 + 1] = -1;
    thread.release(slot);
    if (left?.records) return this.#onLeftRecords(fd, left.records, source, listener);
    const [client, dest] = [socketOf(fd, this.#calls), socketOf(far, this.#calls)];
    if (left === null || client === null || dest === null || listener === null) {
      client?.destroy();
      dest?.destroy();
      return;
    }
    const [toClient, toDest] = [Buffer.from(left.toClient), Buffer.from(left.toDest)];
    listener.options.onSocket(client, {
      ...NOT_ANSWERED,
      left: { dest, toClient, toDest, why: left.why },
    });
  }

  #onLeftRecords(fd: number, records: Uint8Array, source: Endpoint, listener: Listener | null): void {
    const local = listener === null || listener.isBound ? listener?.local : this.#nameOf(fd).local;
    const client = new LeftRecords(fd, records, { source, local: local ?? source }, this.#calls);
    if (listener === null) return client.destroy();
    try {
      listener.options.onAccepted(client);
    } catch (error) {
      client.destroy(); // a fault costs only this client
      throw error;
    }
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
