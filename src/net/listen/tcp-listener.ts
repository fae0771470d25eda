import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { WorkerConnection, TlsWorkerConnection } from "#core/held.ts";
import type { Endpoint } from "#core/session.ts";
import { REPLACED } from "#core/sockets.ts";
import type { OffloadedListener, AcceptOptions, AcceptOffload } from "./accept-offload.ts";
import { OffloadWorth } from "./offload-worth.ts";
import { ANY_V4, ANY_V6, socketIp } from "#net/address/ip.ts";
import type { ListenAsk } from "./listen-ask.ts";

/**
 * The receiver of connections, and what workers may do with them (null: nothing); those that workers do not understand
 * go to `on`.
 */
export interface TcpAcceptor {
  readonly on: (socket: Socket, isGreeted: boolean) => void;
  readonly front: AcceptOptions | null;
}

export interface TcpHolder {
  readonly on: TcpAcceptor;
  active: boolean;
}

interface OffloadedBy {
  readonly share: TcpAcceptor;
  readonly threads: AcceptOffload;
  readonly listening: OffloadedListener;
}

/** Connections that arrive while a new socket has no active holder yet; beyond this they are closed. */
const PENDING_LIMIT = 1024;
const BACKLOG = 4096;
/** For so long the event loop accepts where most clients are not for threads; then these try again. */
const REST_MS = 10_000;

/**
 * One listening socket of the process. The event loop accepts, or relay threads do, where they are worth it; the socket
 * stays the same one, so nothing of what the kernel has queued is lost when that changes.
 */
export class TcpListener {
  readonly holders: TcpHolder[] = [];
  readonly #accepted: Set<Duplex>;
  readonly #threads: () => AcceptOffload | null;
  readonly #pending: Socket[] = [];
  readonly #onAccepted = (socket: Socket): void => this.#take(socket, this.#receive, false);
  #endpoint: Endpoint = { ip: ANY_V4, port: 0 };
  #receive: TcpAcceptor | null = null;
  /** Null: threads accept. */
  #server: Server | null = null;
  /** Where there is no server: our own descriptor of the socket, made and closed by `#keeper`. */
  #fd = -1;
  #descriptorOwner: AcceptOffload | null = null;
  #offloaded: OffloadedBy | null = null;
  /** Settles when no worker listens any more that was stopped. */
  #stopped: Promise<unknown> = Promise.resolve();
  readonly #worth = new OffloadWorth();
  /** Set while workers do not accept. */
  #backoff: NodeJS.Timeout | null = null;

  /** `threads`: those that may accept now. */
  constructor(accepted: Set<Duplex>, threads: () => AcceptOffload | null) {
    this.#accepted = accepted;
    this.#threads = threads;
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
    const { address, port } = server.address() as AddressInfo;
    this.#endpoint = { ip: socketIp(address), port };
    this.#server = server;
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
    const share = this.holders.findLast(({ active }) => active)?.on ?? null;
    this.#receive = share;
    if (share === null) return;
    for (const socket of this.#pending.splice(0)) share.on(socket, false);
    const threads = share.front === null || this.#backoff !== null ? null : this.#threads();
    if (this.#offloaded?.share === share && this.#offloaded.threads === threads) return;
    const before = this.#offloaded;
    this.#offloaded = threads === null ? null : this.#listenBy(threads, share);
    if (this.#offloaded === null) this.#listenHere();
    if (before !== null) this.#stop(before, false);
  }

  #listenBy(threads: AcceptOffload, share: TcpAcceptor): OffloadedBy | null {
    if (share.front === null) return null;
    const { front } = share;
    const counted = this.#counted(front);
    const onTaken = (): void => this.#worth.onTaken();
    const onSocket = (socket: Socket, isGreeted: boolean): void => {
      this.#worth.onTaken();
      if (!this.#worth.onAccepted()) this.#backOff();
      if (!socket.destroyed) this.#take(socket, share, isGreeted);
    };
    if (this.#server !== null) {
      const fd = threads.duplicate(descriptorOf(this.#server));
      if (fd < 0) return null;
      this.#fd = fd;
      this.#descriptorOwner = threads;
    }
    const listening = threads.listen(this.#fd, { ...counted, onTaken, onSocket });
    if (listening === null) {
      if (this.#server !== null) threads.close(this.#fd);
      return null;
    }
    this.#server?.close(); // the socket stays open by our descriptor
    this.#server = null;
    return { share, threads, listening };
  }

  /** The same options, counting accepted connections. */
  #counted(front: AcceptOptions): AcceptOptions {
    const came = (): void => {
      if (!this.#worth.onAccepted()) this.#backOff();
    };
    if (front.handshake !== "tls")
      return {
        ...front,
        on: (client: WorkerConnection) => {
          came();
          front.on(client);
        },
      };
    return {
      ...front,
      on: (client: TlsWorkerConnection) => {
        came();
        client.onStream = (stream) => this.#note(stream);
        front.on(client);
      },
    };
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

  #take(socket: Socket, by: TcpAcceptor | null, isGreeted: boolean): void {
    this.#note(socket);
    socket.once(REPLACED, (stream: Duplex) => this.#note(stream));
    if (by !== null) by.on(socket, isGreeted);
    else if (this.#pending.length < PENDING_LIMIT)
      this.#pending.push(socket.on("error", () => socket.destroy()));
    else socket.destroy();
  }

  #note(stream: Duplex): void {
    const accepted = this.#accepted;
    accepted.add(stream);
    stream.once("close", () => accepted.delete(stream));
  }

  /** A close resets the connections that the kernel has accepted and we have not. */
  async drain(): Promise<void> {
    if (this.#backoff !== null) clearTimeout(this.#backoff);
    this.#backoff = null;
    const front = this.#offloaded;
    this.#offloaded = null;
    if (front !== null) this.#stop(front, true);
    else await queueTaken();
    await this.handedOver(); // they have a descriptor of the socket until then
  }

  async handedOver(): Promise<void> {
    // A later owner may have stopped others meanwhile.
    for (let seen: Promise<unknown> | null = null; seen !== this.#stopped;) await (seen = this.#stopped);
  }

  #stop({ listening }: OffloadedBy, drains: boolean): void {
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

function descriptorOf(server: Server): number {
  return (server as unknown as { _handle: { fd: number } | null })._handle?.fd ?? -1;
}

async function listen(server: Server, { ip, port }: ListenAsk, reusePort: boolean): Promise<void> {
  server.listen({ host: ip, port, backlog: BACKLOG, reusePort });
  try {
    await once(server, "listening");
  } catch (error) {
    // A machine without IPv6: "all families" is IPv4 then.
    if (ip !== ANY_V6 || (error as NodeJS.ErrnoException).code !== "EAFNOSUPPORT") throw error;
    server.listen({ host: ANY_V4, port, backlog: BACKLOG, reusePort });
    await once(server, "listening");
  }
  // After listening, only accept() fails (descriptors exhausted); the kernel keeps the connection for the next try.
  server.on("error", ignore);
}

function ignore(): void {}
