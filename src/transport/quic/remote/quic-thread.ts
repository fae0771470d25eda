/** A thread of QUIC as the main thread sees it: the listeners that it runs, and their clients. */
import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { Endpoint } from "#core/endpoint.ts";
import type { DatagramListener, LentSocket } from "#core/sockets.ts";
import type { SharedTlsContext, TlsContextSource } from "#core/tls-contexts.ts";
import type { ServedClient, ServedEvents } from "#transport/quic/server/served.ts";
import type { FromThread, ThreadedSpec, ToThread } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { RemoteClient } from "./remote-client.ts";

/** A listener that can be run by a thread. */
export interface ThreadedServer {
  readonly spec: ThreadedSpec;
  /** Null: no thread can have it. */
  readonly contexts: TlsContextSource;
  /** Disposed of with the listener. */
  keep(part: Disposable): void;
  readonly onClient: (client: ServedClient) => ServedEvents;
}

export interface QuicThreadParts {
  readonly port: MessagePort;
  /** The relay worker in the same thread. */
  readonly worker: object;
  /** Of the thread's choice of a protocol, as `TlsContextSource.share` takes it. */
  readonly onAlpn: bigint;
  /** It keeps the process alive while it has sockets. */
  readonly hold: (change: 1 | -1) => void;
  /** Of the descriptors that a thread leaves behind that died. */
  readonly closeDescriptor: (fd: number) => void;
}

/** A UDP socket that the thread reads. */
interface Lending {
  readonly number: number;
  readonly lent: LentSocket;
  readonly closed: PromiseWithResolvers<void>;
  /** The thread's own; -1: it has none. */
  fd: number;
  /** It was told to close it. */
  isLeaving: boolean;
  /** For the main thread, should the thread die. */
  fallBack: () => void;
}

interface Listening {
  readonly server: ThreadedServer;
  readonly local: Endpoint;
}

export class QuicThread {
  readonly worker: object;
  readonly outbox: Outbox<ToThread>;
  readonly #parts: QuicThreadParts;
  readonly #sockets = new WeakMap<DatagramListener, Lending>();
  readonly #lendings = new Map<number, Lending>();
  readonly #listening = new Map<number, Listening>();
  readonly #contexts = new Map<number, ThreadContext>();
  readonly #clients = new Map<number, RemoteClient>();
  #numbers = 0;
  #isDead = false;

  constructor(parts: QuicThreadParts) {
    this.#parts = parts;
    this.worker = parts.worker;
    this.outbox = new Outbox(parts.port, (read) => ({ op: "read", ...read }));
    parts.port.on("message", (messages: readonly FromThread[]) => this.#take(messages));
    parts.port.unref();
  }

  /** New clients of the socket are the server's from now on. False: it has to be run here; `fallBack` does so later. */
  listen(socket: DatagramListener, server: ThreadedServer, fallBack: () => void): boolean {
    const known = this.#sockets.get(socket);
    const lending = known ?? this.#borrow(socket);
    if (this.#isDead || lending === null) return false;
    const endpoint = ++this.#numbers;
    const context = new ThreadContext(server.contexts, this.#parts.onAlpn, (address) =>
      this.outbox.put({ op: "context", endpoint, context: address }),
    );
    lending.fallBack = fallBack;
    this.#contexts.set(endpoint, context);
    this.#listening.set(endpoint, { server, local: socket.local });
    server.keep(context);
    this.outbox.put({
      op: "listen",
      socket: lending.number,
      fd: lending.lent.fd,
      local: socket.local,
      endpoint,
      spec: server.spec,
      context: context.address,
    });
    return true;
  }

  #borrow(socket: DatagramListener): Lending | null {
    const number = ++this.#numbers;
    const closed = Promise.withResolvers<void>();
    const state = { number, closed, fd: -1, isLeaving: false, fallBack: (): void => {} };
    const lent = socket.lend?.({
      pause: () => this.#order({ op: "pause", socket: number }),
      close: () => {
        this.#sockets.delete(socket);
        state.isLeaving = true;
        this.#order({ op: "close", socket: number });
        return closed.promise;
      },
    });
    if (lent === undefined || lent === null) return null;
    const lending: Lending = Object.assign(state, { lent });
    this.#sockets.set(socket, lending);
    this.#lendings.set(number, lending);
    this.#parts.hold(1);
    return lending;
  }

  #order(message: ToThread): void {
    this.outbox.put(message);
    this.outbox.flush();
  }

  #take(messages: readonly FromThread[]): void {
    this.outbox.onRead(messages);
    for (const message of messages) this.#takeOne(message);
  }

  #takeOne(message: FromThread): void {
    if (message.op === "read") return this.outbox.onAcknowledged(message);
    if (message.op === "client") return this.#onClient(message);
    if (message.op === "renewed") return this.#contexts.get(message.endpoint)?.onObeyed();
    if (message.op === "listening") return this.#onListening(message.socket, message.fd);
    if (message.op === "closed") return this.#onClosed(message.socket);
    const client = this.#clients.get(message.client);
    if (client === undefined) return;
    if (message.op === "datagrams") client.onDatagrams(message.bytes);
    else if (message.op === "state") client.onState(message);
    else if (message.op === "exported") client.onExported(message.number, message.key);
    else if (message.op === "over") {
      this.#clients.delete(message.client);
      client.onOver(message.error === null ? null : new Error(message.error));
    } else client.onStreamMessage(message);
  }

  #onClient(message: Extract<FromThread, { readonly op: "client" }>): void {
    const listening = this.#listening.get(message.endpoint);
    if (listening === undefined) return;
    const { server, local } = listening;
    const client = new RemoteClient(this, message, local, server.spec.abortCode);
    this.#clients.set(message.client, client);
    client.events = server.onClient(client);
  }

  #onListening(socket: number, fd: number): void {
    const lending = this.#lendings.get(socket);
    if (lending !== undefined) lending.fd = fd;
  }

  #onClosed(socket: number): void {
    const lending = this.#lendings.get(socket);
    if (lending === undefined) return;
    lending.fd = -1;
    if (!lending.isLeaving) return; // the thread ends by itself
    this.#lendings.delete(socket);
    this.#parts.hold(-1);
    lending.closed.resolve();
  }

  /** Nothing of the thread runs any more: its connections are over, and its sockets are read here. */
  onDeath(why: string): void {
    if (this.#isDead) return;
    this.#isDead = true;
    for (;;) {
      const last = receiveMessageOnPort(this.#parts.port);
      if (last === undefined) break;
      this.#take(last.message);
    }
    for (const client of this.#clients.values()) client.onOver(new Error(why));
    this.#clients.clear();
    for (const context of this.#contexts.values()) context.onDeath();
    for (const lending of this.#lendings.values()) this.#recall(lending);
    this.#lendings.clear();
    this.#parts.port.close();
  }

  #recall({ fd, lent, closed, fallBack }: Lending): void {
    if (fd >= 0) this.#parts.closeDescriptor(fd);
    if (lent.takeBack()) fallBack();
    closed.resolve();
  }
}

/** The contexts of a listener as the thread has them, one after the other: each is kept until it has the next one. */
class ThreadContext implements Disposable {
  readonly #source: TlsContextSource;
  readonly #onAlpn: bigint;
  readonly #say: (address: bigint) => void;
  readonly #watch: Disposable;
  #present: SharedTlsContext | null;
  /** Those that the thread may still make connections of, the oldest first. */
  readonly #leaving: (SharedTlsContext | null)[] = [];

  constructor(source: TlsContextSource, onAlpn: bigint, say: (address: bigint) => void) {
    this.#source = source;
    this.#onAlpn = onAlpn;
    this.#say = say;
    this.#present = source.share(onAlpn, true);
    this.#watch = source.watch(() => this.#renew());
  }

  /** 0: there is none, and no client gets in. */
  get address(): bigint {
    return this.#present?.address ?? 0n;
  }

  #renew(): void {
    const next = this.#source.share(this.#onAlpn, true);
    if (next !== null) this.#replace(next); // else the one before stays
  }

  #replace(next: SharedTlsContext | null): void {
    this.#leaving.push(this.#present);
    this.#present = next;
    this.#say(this.address);
  }

  /** The thread has the next one. */
  onObeyed(): void {
    this.#leaving.shift()?.release();
  }

  onDeath(): void {
    for (const one of this.#leaving.splice(0)) one?.release();
    this.#present?.release();
    this.#present = null;
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]();
    if (this.#present !== null) this.#replace(null);
  }
}
