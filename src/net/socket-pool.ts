import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Endpoint, Ip } from "#core/session.ts";
import type { TransparentSocket } from "#core/sockets.ts";
import { allowOverlap } from "#platform/portable.ts";
import { datagramDescriptorOf } from "./datagram-descriptor.ts";
import { ANY_V4, ANY_V6, familyOf, socketIp } from "./ip.ts";
import { openTransparentUdp } from "./transparent-udp.ts";

/** What to listen on. Two asks with the same `key` get the same kernel socket. */
export interface ListenAsk {
  readonly ip: Ip;
  readonly port: number;
  /** Keeps asks for port 0 of different listeners apart. */
  readonly owner: string;
  /** Sets options on the new descriptor before anything arrives (mark); throws where the system cannot. */
  readonly configure?: (fd: number) => void;
}

/** A share in a listening socket. It hands nothing over before `activate`; disposing the last share closes the socket. */
export interface Lease extends AsyncDisposable {
  readonly endpoint: Endpoint;
  /** Takes the socket's traffic from whoever had it. */
  activate(): void;
}

interface Shared<Handler> {
  readonly endpoint: Endpoint;
  readonly fd: number;
  readonly holders: { readonly on: Handler; active: boolean }[];
  /** Makes the newest active holder the receiver. */
  deliver(): void;
  close(): Promise<void>;
}

/** Connections that arrive while a new socket has no active holder yet; beyond this they are closed. */
const PENDING_LIMIT = 1024;
const BACKLOG = 4096;

/** The listening sockets of the process. They outlive a reload: old and new runtime may hold one at the same time. */
export class SocketPool {
  readonly #tcp = new Map<string, Promise<Shared<(socket: Socket) => void>>>();
  readonly #udp = new Map<string, Promise<Shared<(socket: UdpSocket) => void>>>();
  readonly #transparent = new Map<string, Promise<Shared<(socket: TransparentSocket) => void>>>();
  readonly #accepted = new Set<Socket>();

  leaseTcp(ask: ListenAsk, on: (socket: Socket) => void): Promise<Lease> {
    return lease(this.#tcp, ask, on, (asked, shared) => openTcp(asked, shared, this.#accepted));
  }

  /** `on` gets the socket once, at activation, and adds its `message` listener; it must never close the socket. */
  leaseUdp(ask: ListenAsk, on: (socket: UdpSocket) => void): Promise<Lease> {
    return lease(this.#udp, ask, on, openUdp);
  }

  /** For datagrams on their way to others. `on` gets the socket once, at activation. */
  leaseTransparentUdp(ask: ListenAsk, on: (socket: TransparentSocket) => void): Promise<Lease> {
    return lease(this.#transparent, ask, on, openTransparent);
  }

  /** Destroys every connection that was ever accepted and is still open, whatever it is doing: the end of the program. */
  cutOff(): void {
    for (const socket of this.#accepted) socket.destroy();
  }
}

/** `shared`: another socket of ours has the port at an address that overlaps. */
type Open<Handler> = (ask: ListenAsk, shared: boolean) => Promise<Shared<Handler>>;

async function lease<Handler>(
  pool: Map<string, Promise<Shared<Handler>>>,
  ask: ListenAsk,
  on: Handler,
  open: Open<Handler>,
): Promise<Lease> {
  const key = `${ask.ip}|${ask.port}|${ask.port === 0 ? ask.owner : ""}`;
  let opening = pool.get(key);
  const found = opening !== undefined;
  if (opening === undefined) {
    opening = openBeside([...pool.values()], ask, open);
    pool.set(key, opening);
    opening.catch(() => pool.delete(key));
  }
  const shared = await opening;
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
      if (shared.holders.length > 0) return shared.deliver();
      await queueTaken();
      if (shared.holders.length > 0 || pool.get(key) !== opening) return; // somebody has it again, or closed it
      pool.delete(key);
      await shared.close();
    },
  };
}

/** A close resets the connections that the kernel has accepted and we have not: two turns of the event loop let them in. */
async function queueTaken(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/**
 * A reload from 127.0.0.1 to every address (`allow-lan`) holds both sockets for a while, which the kernel refuses
 * unless both agree. They agree for the moment of the bind only, so that nobody else can join them.
 */
async function openBeside<Handler>(
  open: readonly Promise<Shared<Handler>>[],
  ask: ListenAsk,
  make: Open<Handler>,
): Promise<Shared<Handler>> {
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

async function openTcp(
  ask: ListenAsk,
  shared: boolean,
  accepted: Set<Socket>,
): Promise<Shared<(socket: Socket) => void>> {
  function forget(this: Socket): void {
    accepted.delete(this);
  }
  const pending: Socket[] = [];
  const holders: { on: (socket: Socket) => void; active: boolean }[] = [];
  let receive: ((socket: Socket) => void) | null = null;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    accepted.add(socket);
    socket.once("close", forget);
    if (receive !== null) receive(socket);
    else if (pending.length < PENDING_LIMIT) pending.push(socket.on("error", () => socket.destroy()));
    else socket.destroy();
  });
  await listen(server, ask, shared);
  const fd = descriptorOf(server);
  configure(ask, fd, () => server.close());
  const { address, port } = server.address() as AddressInfo;
  return {
    endpoint: { ip: socketIp(address), port },
    fd,
    holders,
    deliver() {
      receive = newestActive(holders);
      if (receive !== null) for (const socket of pending.splice(0)) receive(socket);
    },
    async close() {
      for (const socket of pending.splice(0)) socket.destroy();
      // Accepted connections go on by themselves, so this does not wait for the server's close event.
      server.close();
    },
  };
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

function descriptorOf(server: Server): number {
  return (server as unknown as { _handle: { fd: number } })._handle.fd;
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
  server.on("error", () => {
    // After listening, only accept() fails (descriptors exhausted); the kernel keeps the connection for the next try.
  });
}

const UDP_BUFFER_BYTES = 1024 * 1024;

async function openUdp(ask: ListenAsk, reusePort: boolean): Promise<Shared<(socket: UdpSocket) => void>> {
  const holders: { on: (socket: UdpSocket) => void; active: boolean }[] = [];
  const socket = createSocket({
    type: familyOf(ask.ip) === 6 ? "udp6" : "udp4",
    recvBufferSize: UDP_BUFFER_BYTES,
    sendBufferSize: UDP_BUFFER_BYTES,
    reusePort,
  });
  socket.bind({ address: ask.ip, port: ask.port, exclusive: true });
  try {
    await once(socket, "listening");
  } catch (error) {
    socket.close();
    throw error;
  }
  socket.on("error", () => {
    // An ICMP error for one peer; the socket goes on for the others.
  });
  socket.setMaxListeners(0); // every inbound that ever had the socket waits for its end: one a reload
  const fd = datagramDescriptorOf(socket);
  configure(ask, fd, () => socket.close());
  let receiver: ((socket: UdpSocket) => void) | null = null;
  return {
    endpoint: { ip: socketIp(socket.address().address), port: socket.address().port },
    fd,
    holders,
    deliver() {
      const next = newestActive(holders);
      if (next === receiver) return;
      receiver = next;
      socket.removeAllListeners("message");
      next?.(socket);
    },
    close: async () => void socket.close(),
  };
}

async function openTransparent(
  ask: ListenAsk,
  overlap: boolean,
): Promise<Shared<(socket: TransparentSocket) => void>> {
  const holders: { on: (socket: TransparentSocket) => void; active: boolean }[] = [];
  const { socket, fd, close } = openTransparentUdp(ask, overlap);
  configure(ask, fd, close);
  let receiver: ((socket: TransparentSocket) => void) | null = null;
  return {
    endpoint: socket.local,
    fd,
    holders,
    deliver() {
      const next = newestActive(holders);
      if (next === receiver) return;
      receiver = next;
      next?.(socket);
    },
    close: async () => close(),
  };
}
