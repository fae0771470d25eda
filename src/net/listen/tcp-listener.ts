import { once } from "node:events";
import { closeSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { AcceptedConnection, Followed } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import { REPLACED, boundAddress } from "#core/sockets.ts";
import { descriptorOf } from "#core/handover.ts";
import {
  type AcceptOffload,
  type AcceptOptions,
  type Answered,
  NOT_ANSWERED,
  type OffloadedListener,
} from "./accept-offload.ts";
import { connectionEnds } from "./accept.ts";
import { OffloadWorth } from "./offload-worth.ts";
import { StreamConnection } from "./stream-connection.ts";
import { ANY_V4, ANY_V6, socketIp } from "#net/address/ip.ts";
import type { ListeningSocket } from "./inherited-sockets.ts";
import type { ListenAsk } from "./listen-ask.ts";
import { errnoOf } from "#core/errors.ts";

export interface TcpHolder {
  readonly on: AcceptOptions;
  active: boolean;
}

interface Offloaded {
  readonly holder: TcpHolder;
  readonly workers: AcceptOffload;
  readonly listening: OffloadedListener;
}

/** Connections that arrive while a new socket has no active holder yet; beyond this they are closed. */
const PENDING_LIMIT = 1024;
const BACKLOG = 4096;
/** The event loop accepts for so long where most connections are not for workers; then these try again. */
const REST_MS = 10_000;

/**
 * One listening socket of the process. The event loop accepts, or workers do, where they are worth it; the socket
 * stays the same one, so nothing of what the kernel has queued is lost when that changes.
 */
export class TcpListener {
  readonly holders: TcpHolder[] = [];
  readonly #accepted: Set<Followed>;
  readonly #workers: () => AcceptOffload | null;
  readonly #pending: Socket[] = [];
  readonly #onAccepted = (socket: Socket): void => this.#take(socket, this.#receive, NOT_ANSWERED);
  #endpoint: Endpoint = { ip: ANY_V4, port: 0 };
  #receive: AcceptOptions | null = null;
  /** Null: workers accept. */
  #server: Server | null = null;
  /** Where there is no server: our own descriptor of the socket, made and closed by `#descriptorOwner`. */
  #fd = -1;
  #descriptorOwner: Pick<AcceptOffload, "close"> | null = null;
  #offloaded: Offloaded | null = null;
  /** Settles when no worker listens any more that was stopped. */
  #stopped: Promise<unknown> = Promise.resolve();
  readonly #worth = new OffloadWorth();
  /** Set while workers do not accept. */
  #backoff: NodeJS.Timeout | null = null;

  /** `accepted` has every open stream of an accepted connection. `workers`: those that may accept now. */
  constructor(accepted: Set<Followed>, workers: () => AcceptOffload | null) {
    this.#accepted = accepted;
    this.#workers = workers;
  }

  async open(ask: ListenAsk, reusePort: boolean): Promise<void> {
    const server = this.#newServer();
    await listen(server, ask, reusePort);
    try {
      ask.configure?.(descriptorOf(server));
    } catch (error) {
      server.close(); // a socket that cannot be what was asked for
      throw error;
    }
    const { address, port } = boundAddress(server);
    this.#endpoint = { ip: socketIp(address), port };
    this.#server = server;
  }

  /**
   * Goes on with a socket that listens already, which is its own from here on: nothing is accepted before `deliver`, and
   * until then clients wait in the kernel's queue.
   */
  adopt({ fd, endpoint }: ListeningSocket, ask: ListenAsk): void {
    this.#fd = fd;
    this.#descriptorOwner = { close: closeSync };
    if (endpoint !== null) this.#endpoint = endpoint;
    ask.configure?.(fd);
  }

  get endpoint(): Endpoint {
    return this.#endpoint;
  }

  get fd(): number {
    return this.#server === null ? this.#fd : descriptorOf(this.#server);
  }

  #newServer(): Server {
    return createServer({ allowHalfOpen: true, noDelay: true }, this.#onAccepted);
  }

  deliver(): void {
    const holder = this.holders.findLast(({ active }) => active) ?? null;
    this.#receive = holder?.on ?? null;
    if (holder === null) return;
    for (const socket of this.#pending.splice(0)) this.#deliver(socket, holder.on, NOT_ANSWERED);
    const workers = this.#backoff === null ? this.#workers() : null;
    const before = this.#offloaded;
    if (before?.holder === holder && before.workers === workers) return;
    this.#offloaded = workers === null ? null : this.#offload(workers, holder);
    if (this.#offloaded === null) this.#listenHere();
    if (before !== null) this.#stop(before, false);
  }

  /** Null: the event loop has to accept. */
  #offload(workers: AcceptOffload, holder: TcpHolder): Offloaded | null {
    const options = holder.on;
    if (options.handshake === "unknown") return null;
    if (this.#server !== null) {
      const fd = workers.duplicate(descriptorOf(this.#server));
      if (fd < 0) return null;
      this.#fd = fd;
      this.#descriptorOwner = workers;
    }
    const onAccepted = (connection: AcceptedConnection): void => {
      if (!this.#worth.onAccepted()) this.#backOff();
      connection.follow(this.#note);
      options.onAccepted(connection);
    };
    const onTaken = (): void => this.#worth.onTaken();
    const onDecided = (): void => {
      if (!this.#worth.onAccepted()) this.#backOff();
    };
    const onSocket = (socket: Socket, answered: Answered): void => {
      this.#worth.onTaken();
      if (!this.#worth.onAccepted()) this.#backOff();
      if (!socket.destroyed) this.#take(socket, options, answered);
    };
    const listening = workers.listen(this.#fd, { ...options, onAccepted, onTaken, onDecided, onSocket });
    if (listening === null) {
      if (this.#server !== null) workers.close(this.#fd);
      return null;
    }
    this.#server?.close(); // the socket stays open by our descriptor
    this.#server = null;
    return { holder, workers, listening };
  }

  #backOff(): void {
    if (this.#backoff !== null) return; // the last ones of before
    this.#backoff = setTimeout(() => {
      this.#backoff = null;
      this.deliver();
    }, REST_MS).unref();
    this.deliver();
  }

  #listenHere(): void {
    if (this.#server !== null) return;
    this.#server = this.#newServer();
    this.#server.on("error", ignore);
    this.#server.listen({ fd: this.#fd, backlog: BACKLOG }); // which is the server's from here on
  }

  #take(socket: Socket, by: AcceptOptions | null, answered: Answered): void {
    this.#note(socket);
    socket.once(REPLACED, this.#note);
    if (by !== null) this.#deliver(socket, by, answered);
    else if (this.#pending.length < PENDING_LIMIT)
      this.#pending.push(socket.on("error", () => socket.destroy()));
    else socket.destroy();
  }

  #deliver(socket: Socket, options: AcceptOptions, answered: Answered): void {
    const { probes } = options;
    const ends = connectionEnds(socket);
    if (ends === null) return void socket.destroy();
    const original =
      options.handshake === "redirected" ? options.originalOf(descriptorOf(socket), ends.source.ip) : null;
    // A client that vanished without a word must not stay for ever.
    if (probes !== null) socket.setKeepAlive(true, probes.idleMs, probes.intervalMs);
    options.onAccepted(new StreamConnection(socket, { ...ends, original }, answered));
  }

  readonly #note = (one: Followed): void => {
    const accepted = this.#accepted;
    accepted.add(one);
    one.once("close", () => accepted.delete(one));
  };

  /** A close resets the connections that the kernel has accepted and we have not. */
  async drain(): Promise<void> {
    if (this.#backoff !== null) clearTimeout(this.#backoff);
    this.#backoff = null;
    const before = this.#offloaded;
    this.#offloaded = null;
    if (before !== null) this.#stop(before, true);
    else await queueTaken();
    await this.handedOver(); // they have a descriptor of the socket until then
  }

  async handedOver(): Promise<void> {
    // A later owner may have stopped others meanwhile.
    for (let seen: Promise<unknown> | null = null; seen !== this.#stopped;) await (seen = this.#stopped);
  }

  #stop({ listening }: Offloaded, drains: boolean): void {
    this.#stopped = Promise.all([this.#stopped, listening.stop(drains)]);
  }

  async close(): Promise<void> {
    for (const socket of this.#pending.splice(0)) socket.destroy();
    // Accepted connections continue, so this does not wait for the server's close event.
    if (this.#server === null) this.#descriptorOwner?.close(this.#fd);
    else this.#server.close();
  }
}

/** Two turns of the event loop let them in. */
async function queueTaken(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

async function listen(server: Server, { ip, port }: ListenAsk, reusePort: boolean): Promise<void> {
  server.listen({ host: ip, port, backlog: BACKLOG, reusePort });
  try {
    await once(server, "listening");
  } catch (error) {
    // A machine without IPv6: "all families" is IPv4 then.
    if (ip !== ANY_V6 || errnoOf(error) !== "EAFNOSUPPORT") throw error;
    server.listen({ host: ANY_V4, port, backlog: BACKLOG, reusePort });
    await once(server, "listening");
  }
  // After listening, only accept() fails (descriptors exhausted); the kernel keeps the connection for the next try.
  server.on("error", ignore);
}

function ignore(): void {}
