/** A thread of QUIC as the main thread sees it: the listeners that it runs, and their clients. */
import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { Endpoint } from "#core/endpoint.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import type { Lane } from "#transport/quic/server/lanes.ts";
import type { ServedClient, ServedEvents } from "#transport/quic/server/served.ts";
import type { FromThread, ThreadedSpec, ToThread } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { RemoteClient } from "./remote-client.ts";
import { ThreadContext } from "./thread-context.ts";

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
export interface ThreadSocket {
  /** The same for a socket that the thread has already. */
  readonly number: number;
  /** Of the main thread, which keeps it open until the thread has closed its own. */
  readonly fd: number;
  readonly local: Endpoint;
}

interface Reading {
  readonly closed: PromiseWithResolvers<void>;
  /** The thread's own; -1: it has none. */
  fd: number;
  /** It was told to close it. */
  isLeaving: boolean;
}

interface Listening {
  readonly server: ThreadedServer;
  readonly local: Endpoint;
}

export class QuicThread {
  readonly worker: object;
  readonly outbox: Outbox<ToThread>;
  readonly #parts: QuicThreadParts;
  readonly #lane: Lane;
  readonly #reading = new Map<number, Reading>();
  readonly #listening = new Map<number, Listening>();
  readonly #contexts = new Map<number, ThreadContext>();
  readonly #clients = new Map<number, RemoteClient>();
  #endpoints = 0;
  #isDead = false;

  constructor(parts: QuicThreadParts, lane: Lane) {
    this.#parts = parts;
    this.#lane = lane;
    this.worker = parts.worker;
    this.outbox = new Outbox(parts.port, (read) => ({ op: "read", ...read }));
    parts.port.on("message", (messages: readonly FromThread[]) => this.#take(messages));
    parts.port.unref();
  }

  /** New clients of the socket are the server's from now on. */
  listen({ number, fd, local }: ThreadSocket, server: ThreadedServer): void {
    if (this.#isDead) return;
    const endpoint = ++this.#endpoints;
    const context = new ThreadContext(server.contexts, this.#parts.onAlpn, (address) =>
      this.outbox.put({ op: "context", endpoint, context: address }),
    );
    if (!this.#reading.has(number)) {
      this.#reading.set(number, { closed: Promise.withResolvers<void>(), fd: -1, isLeaving: false });
      this.#parts.hold(1);
    }
    this.#contexts.set(endpoint, context);
    this.#listening.set(endpoint, { server, local });
    server.keep(context);
    const { spec } = server;
    const { address } = context;
    this.outbox.put({
      op: "listen",
      socket: number,
      fd,
      local,
      endpoint,
      spec,
      context: address,
      lane: this.#lane,
    });
  }

  /** Reads no more of it, and writes on. */
  pause(socket: number): void {
    this.#order({ op: "pause", socket });
  }

  /** Resolves when the thread has closed its own, or has none. */
  close(socket: number): Promise<void> {
    const reading = this.#reading.get(socket);
    if (reading === undefined) return Promise.resolve();
    if (!reading.isLeaving) this.#order({ op: "close", socket });
    reading.isLeaving = true;
    return reading.closed.promise;
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
    const reading = this.#reading.get(socket);
    if (reading !== undefined) reading.fd = fd;
  }

  #onClosed(socket: number): void {
    const reading = this.#reading.get(socket);
    if (reading === undefined) return;
    reading.fd = -1;
    if (!reading.isLeaving) return; // the thread ends by itself
    this.#reading.delete(socket);
    this.#parts.hold(-1);
    reading.closed.resolve();
  }

  /** Nothing of the thread runs any more: its connections are over, and its descriptors are closed. */
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
    for (const { fd, closed } of this.#reading.values()) {
      if (fd >= 0) this.#parts.closeDescriptor(fd);
      closed.resolve();
    }
    this.#reading.clear();
    this.#parts.port.close();
  }
}
