import type { Followed } from "#core/accepted.ts";
import { setTimeout as delay } from "node:timers/promises";
import type { Network } from "#core/session.ts";
import type { DatagramListener, TransparentSocket } from "#core/sockets.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { AcceptOptions, AcceptOffload } from "./accept-offload.ts";
import { UnauthenticatedPool } from "./unauthenticated-clients.ts";
import { TcpListener } from "./tcp-listener.ts";
import { OwnListeners } from "./own-listeners.ts";
import { openTransparentUdp, type TransparentUdpAsk } from "#net/udp/transparent-udp.ts";
import { InheritedSockets, type ListeningSocket } from "./inherited-sockets.ts";
import { deliverer, keyOf, lease, type Lease, type Shared, type SocketSlot } from "./lease.ts";
import type { ListenAsk } from "./listen-ask.ts";

/** How late it may be noticed that the last stream has ended. */
const LOOK_MS = 100;

type OnListener = (socket: DatagramListener) => void;

/** The listening sockets of the process. They outlive a reload: old and new runtime may hold one at the same time. */
export class SocketPool {
  /** The clients whose handshakes run on the event loop. */
  readonly unauthenticated = new UnauthenticatedPool();
  readonly listening: OwnListeners;
  readonly #tcp = new Map<string, Promise<TcpListener>>();
  readonly #udp = new Map<string, Promise<Shared<OnListener>>>();
  readonly #transparent = new Map<string, Promise<Shared<(socket: TransparentSocket) => void>>>();
  readonly #datagrams = new DatagramSockets();
  readonly #accepted = new Set<Followed>();
  #threads: AcceptOffload | null = null;
  /** UDP sockets that another process reads from now on: replies of what began here still go out by them. */
  #lent: (() => void)[] | null = null;
  readonly #inherited: InheritedSockets;

  /** `onListeners` is called when there is another listening endpoint, or one less. */
  constructor(onListeners: () => void = () => {}, inherited = new InheritedSockets()) {
    this.listening = new OwnListeners(onListeners);
    this.#inherited = inherited;
  }

  /** Those that are open, as `InheritedSockets` of another process takes them; each stays this process's, too. */
  async open(): Promise<readonly ListeningSocket[]> {
    const pools = [
      ["tcp", this.#tcp],
      ["udp", this.#udp],
      ["transparent", this.#transparent],
    ] as const;
    const open: ListeningSocket[] = [];
    for (const [kind, pool] of pools)
      for (const [key, opening] of pool) {
        const { fd, endpoint } = await opening;
        open.push({ key: `${kind} ${key}`, fd, endpoint });
      }
    return open;
  }

  /**
   * Another process reads them: a UDP socket that is closed here is read no more, but sends until `cutOff`, which calls
   * `close` for what else goes on until then.
   */
  handOver(close: () => void): void {
    this.#lent = [close];
  }

  /** Settles when no stream is open that was ever accepted. */
  async emptied(): Promise<void> {
    while (this.#accepted.size > 0) await delay(LOOK_MS, undefined, { ref: false });
  }

  /** Connections go to `options`, accepted by workers where they can read the handshake. */
  leaseTcp(ask: ListenAsk, options: AcceptOptions): Promise<Lease> {
    return lease(this.#place("tcp", this.#tcp), ask, options, async (asked, shared) => {
      const listener = new TcpListener(this.#accepted, () => this.#threads);
      const inherited = this.#inherited.take(`tcp ${keyOf(asked)}`);
      if (inherited === null) await listener.open(asked, shared);
      else listener.adopt(inherited, asked);
      return listener;
    });
  }

  /** From now on by these threads, where a listener allows it; null: by the event loop. */
  useThreads(threads: AcceptOffload | null): void {
    if (threads === this.#threads) return;
    this.#threads = threads;
    for (const opening of this.#tcp.values())
      void opening.then(
        (listener) => listener.deliver(),
        () => {}, // the caller that asked for it has the error
      );
  }

  /** `on` gets the socket once, at activation. */
  leaseUdp(ask: ListenAsk, on: OnListener): Promise<Lease> {
    const place = this.#place("udp", this.#udp);
    return lease(place, ask, on, (asked, reusePort) => {
      const inherited = this.#inherited.take(`udp ${keyOf(asked)}`)?.fd ?? null;
      return openUdp(asked, { reusePort, inherited, sockets: this.#datagrams, lent: () => this.#lent });
    });
  }

  /** For datagrams on their way to others. `on` gets the socket once, at activation. */
  leaseTransparentUdp(ask: ListenAsk, on: (socket: TransparentSocket) => void): Promise<Lease> {
    return lease(this.#place("udp", this.#transparent), ask, on, (asked, overlap) => {
      const inherited = this.#inherited.take(`transparent ${keyOf(asked)}`)?.fd ?? null;
      return openTransparent(asked, { overlap, inherited, lent: () => this.#lent });
    });
  }

  #place<Of>(network: Network, pool: Map<string, Promise<Of>>): SocketSlot<Of> {
    return { network, pool, listening: this.listening };
  }

  /** Destroys every connection that was ever accepted and is still open, whatever it is doing: the end of the program. */
  cutOff(): void {
    for (const one of this.#accepted) one.destroy();
    for (const close of this.#lent?.splice(0) ?? []) close();
  }
}

/** A socket that cannot be what was asked for is closed. */
function configure(ask: ListenAsk, fd: number, close: () => void): void {
  try {
    if (fd >= 0) ask.configure?.(fd);
  } catch (error) {
    close();
    throw error;
  }
}

/** Read in one turn of the event loop: the DNS server puts aside what it cannot answer at once. */
const DNS_BATCHES = 16;

interface UdpParts {
  readonly reusePort: boolean;
  /** A descriptor that is bound already. */
  readonly inherited: number | null;
  readonly sockets: DatagramSockets;
  /** Where closing waits; null: it does not. */
  readonly lent: () => (() => void)[] | null;
}

async function openUdp(
  ask: ListenAsk,
  { reusePort, inherited, sockets, lent }: UdpParts,
): Promise<Shared<OnListener>> {
  const holders: { on: OnListener; active: boolean }[] = [];
  const configured = (fd: number): void => void (fd >= 0 && ask.configure?.(fd));
  const { socket, fd, pause, close } = await openDatagrams(
    {
      at: ask,
      reusePort,
      inherited,
      batchesInATurn: ask.servesDns === true ? DNS_BATCHES : 1,
      configure: configured,
    },
    sockets,
  );
  return {
    endpoint: socket.local,
    fd,
    holders,
    deliver: deliverer(holders, (next) => (next === null ? socket.receive(ignore) : next(socket))),
    handedOver: async () => {},
    drain: async () => {},
    close: closer({ pause, close, closed: socket.closed }, lent),
  };
}

function ignore(): void {}

/** At once, or where another process reads the socket behind the last flow. */
function closer(
  { pause, close, closed }: { pause(): void; close(): void; readonly closed: Promise<void> },
  lent: UdpParts["lent"],
): () => Promise<void> {
  return async () => {
    const waiting = lent();
    if (waiting !== null) {
      pause();
      waiting.push(close);
      return;
    }
    close();
    await closed;
  };
}

async function openTransparent(
  ask: ListenAsk,
  { overlap, inherited, lent }: Required<TransparentUdpAsk> & Pick<UdpParts, "lent">,
): Promise<Shared<(socket: TransparentSocket) => void>> {
  const holders: { on: (socket: TransparentSocket) => void; active: boolean }[] = [];
  const { socket, fd, pause, close } = openTransparentUdp(ask, { overlap, inherited });
  configure(ask, fd, close);
  return {
    endpoint: socket.local,
    fd,
    holders,
    deliver: deliverer(holders, (next) => next?.(socket)),
    handedOver: async () => {},
    drain: async () => {},
    close: closer({ pause, close, closed: socket.closed }, lent),
  };
}
