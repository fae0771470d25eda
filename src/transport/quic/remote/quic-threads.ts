/** All threads of QUIC: each has a socket of its own at the address of every listener, see server/lanes.ts. */
import type { DatagramListener, LentSocket, SharedSocket } from "#core/sockets.ts";
import { chooseLane } from "#transport/quic/server/lanes.ts";
import type { QuicThread, ThreadedServer } from "./quic-thread.ts";

/** The port of a listener. */
interface Port {
  readonly number: number;
  readonly socket: DatagramListener;
  readonly lent: LentSocket;
  /** Those that read it: the first one has the socket itself. */
  readonly threads: QuicThread[];
  /** Of the others, one each. */
  shared: readonly SharedSocket[];
  /** Resolves when no more join; they do while it is pending. */
  joined: Promise<void>;
  server: ThreadedServer;
  /** For the main thread, should a thread die. */
  fallBack: () => void;
  /** Others may read it no more, or never. */
  isAlone: boolean;
}

export class QuicThreads {
  readonly #threads: readonly QuicThread[];
  readonly #ports = new Map<DatagramListener, Port>();
  #numbers = 0;
  #isOver = false;

  /** One at least; the lane of each is its place among them. */
  constructor(threads: readonly QuicThread[]) {
    this.#threads = threads;
  }

  /** New clients of the socket are the server's from now on. False: it has to be run here; `fallBack` does so later. */
  listen(socket: DatagramListener, server: ThreadedServer, fallBack: () => void): boolean {
    if (this.#isOver) return false;
    const port = this.#ports.get(socket) ?? this.#borrow(socket, server);
    if (port === null) return false;
    port.server = server;
    port.fallBack = fallBack;
    // Behind a filter no id can be seen, so who moves would not be found.
    if (server.spec.filter !== null) void this.#leaveAlone(port);
    for (const [lane, thread] of port.threads.entries()) listenIn(thread, port, lane);
    return true;
  }

  #borrow(socket: DatagramListener, server: ThreadedServer): Port | null {
    const holder: { port: Port | null } = { port: null };
    const lent = socket.lend?.({
      pause: () => this.#pause(holder.port),
      close: () => this.#close(holder.port),
    });
    const [first, ...others] = this.#threads;
    if (lent === undefined || lent === null || first === undefined) return null;
    const port: Port = {
      number: ++this.#numbers,
      socket,
      lent,
      threads: [first],
      shared: [],
      joined: Promise.resolve(),
      server,
      fallBack() {},
      isAlone: server.spec.filter !== null,
    };
    holder.port = port;
    this.#ports.set(socket, port);
    if (others.length > 0 && !port.isAlone) port.joined = this.#join(port, others);
    return port;
  }

  async #join(port: Port, others: readonly QuicThread[]): Promise<void> {
    const shared = await port.lent.share(others.length, chooseLane(this.#threads.length));
    port.shared = shared ?? [];
    if (shared === null || port.isAlone) return closeAll(port);
    port.threads.push(...others);
    for (const lane of others.keys()) listenIn(others[lane], port, lane + 1);
  }

  /** Only the first thread reads it from now on; clients of the others are told. */
  async #leaveAlone(port: Port): Promise<void> {
    port.isAlone = true;
    await Promise.all(port.threads.splice(1).map((thread) => thread.close(port.number)));
    closeAll(port);
  }

  /** Another process reads the first socket, and makes others of its own. */
  #pause(port: Port | null): void {
    if (port === null) return;
    port.threads[0]?.pause(port.number);
    void this.#leaveAlone(port);
  }

  async #close(port: Port | null): Promise<void> {
    if (port === null) return;
    this.#ports.delete(port.socket);
    const others = this.#leaveAlone(port);
    await Promise.all([...port.threads.map((thread) => thread.close(port.number)), others, port.joined]);
  }

  /** Nothing of a thread runs any more: the others close their sockets, and all are read here. */
  onDeath(thread: QuicThread, why: string): void {
    this.#isOver = true;
    thread.onDeath(why);
    for (const port of this.#ports.values()) void this.#recall(port);
  }

  async #recall(port: Port): Promise<void> {
    await this.#close(port);
    if (port.lent.takeBack()) port.fallBack();
  }
}

function listenIn(
  thread: QuicThread | undefined,
  { number, socket, lent, shared, server }: Port,
  lane: number,
): void {
  const fd = lane === 0 ? lent.fd : shared[lane - 1]?.fd;
  if (fd !== undefined) thread?.listen({ number, fd, local: socket.local }, server);
}

function closeAll(port: Port): void {
  for (const one of port.shared) one.close();
  port.shared = [];
}
