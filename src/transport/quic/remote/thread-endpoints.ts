/** The listeners that a thread of QUIC runs, and what the main thread says of them and of their clients. */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { openDatagrams, type OpenedDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { QuicLibrary } from "#platform/quic.ts";
import { serverTls } from "#transport/quic/native-tls.ts";
import { makeCongestion } from "#transport/quic/congestion/choice.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import type { QuicServerConnection } from "#transport/quic/server/connection.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import { ServerSecrets } from "#transport/quic/server/secrets.ts";
import type { FromThread, ThreadedSpec, ToThread } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { ThreadClient } from "./thread-client.ts";
import type { ThreadStream } from "./thread-stream.ts";

export interface ThreadEndpointsParts {
  readonly port: MessagePort;
  readonly library: QuicLibrary;
  /** Another descriptor of the same socket; -1: none is left. */
  readonly duplicate: (fd: number) => number;
  readonly makeFilter: (spec: ThreadedSpec["filter"]) => PacketFilter | null;
}

/** Of messages to the main thread: beyond it nothing is read of clients. */
const MOST_UNREAD = { messages: 65_536, bytes: 64 * 1024 * 1024 };

type Listen = Extract<ToThread, { readonly op: "listen" }>;

export class ThreadEndpoints {
  readonly #parts: ThreadEndpointsParts;
  readonly #outbox: Outbox<FromThread>;
  /** Null: nothing listens yet. */
  #ports: QuicPorts | null = null;
  readonly #datagrams = new DatagramSockets();
  readonly #sockets = new Map<number, Promise<OpenedDatagrams>>();
  /** By endpoint: those in force. */
  readonly #contexts = new Map<number, { address: bigint }>();
  readonly #clients = new Map<number, ThreadClient>();
  /** Sockets that are read here no more. */
  readonly #handedOver = new Set<number>();
  /** The main thread is behind. */
  #isHeld = false;
  #lastClient = 0;

  constructor(parts: ThreadEndpointsParts) {
    this.#parts = parts;
    this.#outbox = new Outbox(parts.port, (read) => ({ op: "read", ...read }));
    this.#outbox.onChange = () => this.#look();
    parts.port.on("message", (messages: readonly ToThread[]) => this.#take(messages));
  }

  /**
   * A stream for a relay of this thread, behind all that the main thread has said of it before; null: it is gone. `numbers`
   * as `RemoteStream` gives them.
   */
  lend(numbers: (at: number) => number): ThreadStream | null {
    for (;;) {
      const next = receiveMessageOnPort(this.#parts.port);
      if (next === undefined) break;
      this.#take(next.message);
    }
    return this.#clients.get(numbers(0))?.lend(numbers(1), numbers(2)) ?? null;
  }

  #take(messages: readonly ToThread[]): void {
    this.#outbox.onRead(messages);
    for (const message of messages)
      if (message.op === "read") this.#outbox.onAcknowledged(message);
      else if ("client" in message) this.#clients.get(message.client)?.take(message);
      else if (message.op === "listen") void this.#listen(message);
      else if (message.op === "context") this.#renew(message.endpoint, message.context);
      else if (message.op === "pause") void this.#pause(message.socket);
      else void this.#close(message.socket);
  }

  /** Where the main thread does not keep up, clients wait for it, or are lost, in the kernel. */
  #look(): void {
    const { unreadMessages, unreadBytes } = this.#outbox;
    const isBehind = unreadMessages > MOST_UNREAD.messages || unreadBytes > MOST_UNREAD.bytes;
    if (isBehind === this.#isHeld) return;
    this.#isHeld = isBehind;
    for (const [socket, opening] of this.#sockets)
      if (!this.#handedOver.has(socket)) void this.#hold(opening);
  }

  async #hold(opening: Promise<OpenedDatagrams>): Promise<void> {
    const socket = await opening;
    if (this.#isHeld) socket.pause();
    else socket.resume();
  }

  /** Another process reads it. */
  async #pause(socket: number): Promise<void> {
    this.#handedOver.add(socket);
    (await this.#sockets.get(socket))?.pause();
  }

  async #listen(message: Listen): Promise<void> {
    const { endpoint, context, spec } = message;
    this.#contexts.set(endpoint, { address: context });
    const opening = this.#sockets.get(message.socket) ?? this.#open(message);
    this.#sockets.set(message.socket, opening);
    const { socket, fd } = await opening;
    const openTls = serverTls(() => this.#contexts.get(endpoint) ?? { address: 0n }, spec.clientAuthType);
    if (openTls === null) throw new Error("this thread has no QUIC");
    this.#ports ??= new QuicPorts(new ServerSecrets(message.lane));
    this.#ports.open(socket, {
      ciphers: this.#parts.library.ciphers,
      openTls,
      numbers: spec.numbers,
      abortCode: spec.abortCode,
      closeCode: spec.closeCode,
      makeCongestion: () => makeCongestion(spec.congestion),
      filter: this.#parts.makeFilter(spec.filter),
      onConnection: (client) => this.#onConnection(endpoint, client),
    });
    if (this.#isHeld) void this.#hold(opening);
    this.#outbox.put({ op: "listening", socket: message.socket, fd });
  }

  #open({ fd, local }: Listen): Promise<OpenedDatagrams> {
    const inherited = this.#parts.duplicate(fd);
    if (inherited < 0) throw new Error("no descriptor is left for a listener of QUIC");
    return openDatagrams({ at: local, reusePort: false, inherited, configure() {} }, this.#datagrams);
  }

  #renew(endpoint: number, address: bigint): void {
    if (address === 0n) this.#contexts.delete(endpoint);
    else this.#contexts.set(endpoint, { address });
    this.#outbox.put({ op: "renewed", endpoint });
  }

  #onConnection(endpoint: number, client: QuicServerConnection): ThreadClient {
    const number = ++this.#lastClient;
    const onOver = (): void => void this.#clients.delete(number);
    const made = new ThreadClient({ client, number, endpoint, outbox: this.#outbox, onOver });
    this.#clients.set(number, made);
    return made;
  }

  /** All clients are told, and nothing is read any more. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#sockets.keys()].map((socket) => this.#close(socket)));
    this.#outbox.flush();
    this.#parts.port.close();
  }

  /** Its clients are told. */
  async #close(socket: number): Promise<void> {
    const opening = this.#sockets.get(socket);
    this.#sockets.delete(socket);
    this.#handedOver.delete(socket);
    try {
      (await opening)?.close();
    } finally {
      this.#outbox.put({ op: "closed", socket });
    }
  }
}
