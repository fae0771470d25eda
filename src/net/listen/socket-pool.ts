import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Endpoint, Network } from "#core/session.ts";
import type { DatagramListener, TransparentSocket } from "#core/sockets.ts";
import { allowOverlap } from "#platform/portable.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { AcceptOptions, AcceptOffload } from "./accept-offload.ts";
import { ANY_V4, ANY_V6, familyOf } from "#net/address/ip.ts";
import { UnauthenticatedPool } from "./unauthenticated-clients.ts";
import { TcpListener } from "./tcp-listener.ts";
import { OwnListeners } from "./own-listeners.ts";
import { openTransparentUdp } from "#net/udp/transparent-udp.ts";
import { InheritedSockets, type ListeningSocket } from "./inherited-sockets.ts";
import type { ListenAsk } from "./listen-ask.ts";

/** How late it may be noticed that the last stream has ended. */
const LOOK_MS = 100;

/** A share in a listening socket. It hands nothing over before `activate`; disposing the last share closes the socket. */
export interface Lease extends AsyncDisposable {
  readonly endpoint: Endpoint;
  /** Takes over the socket's traffic from the former leaseholder. */
  activate(): void;
}

export interface Shared<Handler> {
  readonly endpoint: Endpoint;
  readonly fd: number;
  readonly holders: { readonly on: Handler; active: boolean }[];
  /** Makes the newest active holder the receiver. */
  deliver(): void;
  /** Settles when no connection comes any more to holders that have given it up. */
  handedOver(): Promise<void>;
  /** Takes what has come already, where a close would reset it. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

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
  readonly #accepted = new Set<Duplex>();
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
    ] as const;
    const open: ListeningSocket[] = [];
    for (const [network, pool] of pools)
      for (const [key, opening] of pool) {
        const { fd, endpoint } = await opening;
        open.push({ key: `${network} ${key}`, fd, endpoint });
      }
    return open;
  }

  /** Another process reads them: a UDP socket that is closed here is read no more, but sends until `cutOff`. */
  handOver(): void {
    this.#lent = [];
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
    return lease(this.#place("udp", this.#transparent), ask, on, openTransparent);
  }

  #place<Of>(network: Network, pool: Map<string, Promise<Of>>): SocketSlot<Of> {
    return { network, pool, listening: this.listening };
  }

  /** Destroys every connection that was ever accepted and is still open, whatever it is doing: the end of the program. */
  cutOff(): void {
    for (const socket of this.#accepted) socket.destroy();
    for (const close of this.#lent?.splice(0) ?? []) close();
  }
}

/** Where sockets of one kind are kept, and noted. */
interface SocketSlot<Of> {
  readonly network: Network;
  readonly pool: Map<string, Promise<Of>>;
  readonly listening: OwnListeners;
}

function keyOf({ ip, port, owner }: ListenAsk): string {
  return `${ip}|${port}|${port === 0 ? owner : ""}`;
}

/** `open`: its second argument says that another socket of ours has the port at an address that overlaps. */
async function lease<Handler, Of extends Shared<Handler>>(
  place: SocketSlot<Of>,
  ask: ListenAsk,
  on: Handler,
  open: (ask: ListenAsk, shared: boolean) => Promise<Of>,
): Promise<Lease> {
  const { network, pool, listening } = place;
  const key = keyOf(ask);
  let opening = pool.get(key);
  const found = opening !== undefined;
  if (opening === undefined) {
    opening = openBeside([...pool.values()], ask, open);
    pool.set(key, opening);
    opening.catch(() => pool.delete(key));
  }
  const shared = await opening;
  if (pool.get(key) !== opening) return lease(place, ask, on, open); // closed just now
  if (!found) listening.add(network, shared.endpoint, ask.servesDns ?? false);
  if (found && shared.fd >= 0) ask.configure?.(shared.fd); // it was opened for another configuration
  const holder = { on, active: false };
  shared.holders.push(holder);
  return {
    endpoint: shared.endpoint,
    activate() {
      holder.active = true;
      shared.deliver();
    },
    async [Symbol.asyncDispose]() {
      const at = shared.holders.indexOf(holder);
      if (at < 0) return;
      shared.holders.splice(at, 1);
      if (shared.holders.length > 0) {
        shared.deliver();
        return shared.handedOver();
      }
      await shared.drain();
      if (shared.holders.length > 0 || pool.get(key) !== opening) return; // leased again meanwhile, or closed
      pool.delete(key);
      listening.remove(network, shared.endpoint);
      await shared.close();
    },
  };
}

/**
 * A reload from 127.0.0.1 to every address (`allow-lan`) holds both sockets for a while, which the kernel refuses
 * unless both agree. They agree for the moment of the bind only, so that no other program can join them.
 */
async function openBeside<Of extends Shared<unknown>>(
  open: readonly Promise<Of>[],
  ask: ListenAsk,
  make: (ask: ListenAsk, shared: boolean) => Promise<Of>,
): Promise<Of> {
  const settled = await Promise.allSettled(open);
  const ours = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const descriptors = ours
    .filter(({ endpoint, fd }) => fd >= 0 && overlaps(endpoint, ask))
    .map(({ fd }) => fd);
  if (descriptors.length === 0 || !allowOverlap(descriptors, true)) return make(ask, false);
  try {
    const made = await make(ask, true);
    if (made.fd >= 0) descriptors.push(made.fd);
    return made;
  } finally {
    allowOverlap(descriptors, false);
  }
}

function overlaps({ ip, port }: Endpoint, ask: ListenAsk): boolean {
  if (port !== ask.port || ip === ask.ip) return false;
  const everywhere = [ip, ask.ip].includes(ANY_V6); // a dual-stack socket has the IPv4 addresses, too
  return everywhere || (familyOf(ip) === familyOf(ask.ip) && [ip, ask.ip].includes(ANY_V4));
}

function newestActive<Handler>(holders: readonly { on: Handler; active: boolean }[]): Handler | null {
  return holders.findLast(({ active }) => active)?.on ?? null;
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

/** `hand`: the handler that gets the socket's traffic from now on; null: none. */
function deliverer<Handler>(
  holders: readonly { on: Handler; active: boolean }[],
  hand: (next: Handler | null) => void,
): () => void {
  let receiver: Handler | null = null;
  return () => {
    const next = newestActive(holders);
    if (next === receiver) return;
    receiver = next;
    hand(next);
  };
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
    close: async () => {
      const waiting = lent();
      if (waiting === null) return close();
      pause();
      waiting.push(close);
    },
  };
}

function ignore(): void {}

async function openTransparent(
  ask: ListenAsk,
  overlap: boolean,
): Promise<Shared<(socket: TransparentSocket) => void>> {
  const holders: { on: (socket: TransparentSocket) => void; active: boolean }[] = [];
  const { socket, fd, close } = openTransparentUdp(ask, overlap);
  configure(ask, fd, close);
  return {
    endpoint: socket.local,
    fd,
    holders,
    deliver: deliverer(holders, (next) => next?.(socket)),
    handedOver: async () => {},
    drain: async () => {},
    close: async () => close(),
  };
}
