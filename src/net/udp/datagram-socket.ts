/** A bound UDP socket: by the runtime one datagram at a time, or in batches where the system can. */
import type { Socket } from "node:dgram";
import type { Endpoint, Ip } from "#core/session.ts";
import type { SocketProgram } from "#core/sockets.ts";
import {
  type Control,
  openBatchedDatagrams,
  UV_READABLE,
  type DatagramBatches,
  type Outgoing,
  type ReadinessWatch,
} from "#platform/datagrams.ts";
import { datagramDescriptorOf } from "./datagram-descriptor.ts";
import { familyOf, socketIp } from "#net/address/ip.ts";
import { PeerNames } from "#net/address/peer-names.ts";

/** To be asked for with every socket: a burst must find room while the event loop is busy. The system may give less. */
export const BUFFERS = { recvBufferSize: 1024 * 1024, sendBufferSize: 1024 * 1024 };

/** `payload` is lent until it returns. `from` is the same object for the same peer, in most cases. `ecn`: as of `Datagram`. */
export type OnDatagram = (payload: Buffer, from: Endpoint, ecn: number) => void;

/** Is this datagram to be dropped, wherever it comes from? */
export type Refuses = (payload: Uint8Array) => boolean;

export interface TakeOptions {
  /**
   * How many batches are read before others have their turn; more than one is for a receiver that only puts away what comes.
   * Absent: 1.
   */
  readonly batchesInATurn?: number;
  /** Asked before anything else is done with a datagram. Absent: none is refused. */
  readonly refuses?: Refuses;
}

export interface DatagramSocket {
  readonly port: number;
  /** Its descriptor as long as it is open; negative: the system has none. */
  readonly fd: number;
  /** It can be read by another thread: what comes while none reads it waits in the kernel. */
  readonly isLendable: boolean;
  /** Begins to read. Of what came before the kernel has kept what fits, but without batches it is lost. */
  begin(): void;
  /** Reads no more. */
  pause(): void;
  /**
   * One datagram: `head`, where there is one, and behind it `payload`; both are the caller's again when it returns.
   * Never waits and may drop. `isMarked`: with ECT(0), where `useEcn` has said yes.
   */
  send(head: Uint8Array | null, payload: Uint8Array, ip: Ip, port: number, isMarked?: boolean): void;
  /** Datagrams of `size` bytes each, one behind another; the last may be shorter. Otherwise as `send`. */
  sendRun(payloads: Uint8Array, size: number, ip: Ip, port: number, isMarked?: boolean): void;
  /** As of `DatagramListener`. */
  useEcn(): boolean;
  /** As of `DatagramListener`. */
  sieve(program: SocketProgram | null): boolean;
  /** Other sockets of this user may be bound to its address from now on. False: the system refuses. */
  admitOthers(): boolean;
  /**
   * Has the kernel ask a program, which is shown the payload, which of the sockets at one address a datagram is for: its answer
   * counts them in the order of their binding. One that is none: always the same for the same two addresses. False: it cannot.
   */
  chooseBy(program: SocketProgram): boolean;
  close(): void;
}

/** What the sockets of one owner share: the memory of the batches, made when the first socket comes. */
export class DatagramSockets {
  readonly #open: () => DatagramBatches | null;
  #batches: DatagramBatches | null | undefined;

  /** `open` answers null where datagrams are to come and go one at a time. */
  constructor(open: () => DatagramBatches | null = () => openBatchedDatagrams()) {
    this.#open = open;
  }

  /**
   * Takes a bound socket over, which has an 'error' listener; `on` is called after `begin`. One at a time, too, where no
   * descriptor is left.
   */
  take(socket: Socket, on: OnDatagram, options: TakeOptions = {}): DatagramSocket {
    if (this.#batches === undefined) this.#batches = this.#open();
    const refuses = options.refuses ?? (() => false);
    return (
      openBatched(socket, this.#batches, on, { batchesInATurn: 1, ...options, refuses }) ??
      new PlainSocket(socket, (payload, from) => void (refuses(payload) || on(payload, from, 0)))
    );
  }
}

/** Null: the socket is as it was. */
function openBatched(
  socket: Socket,
  batches: DatagramBatches | null,
  on: OnDatagram,
  options: Required<TakeOptions>,
): DatagramSocket | null {
  const fd = batches === null ? -1 : datagramDescriptorOf(socket);
  const own = batches === null || fd < 0 ? -1 : batches.adopt(fd);
  if (batches === null || own < 0) return null;
  try {
    return new BatchedSocket(socket, own, batches, { on, ...options });
  } catch {
    batches.close(own); // the event loop cannot watch it
    return null;
  }
}

/** A batch of which so many datagrams were refused cost little: others wait behind it, and it is not counted, */
const REFUSED_IN_BATCH = 32;
/** but so many of them in a turn. */
const MOST_REFUSED_BATCHES = 16;

/** Bytes that wait in the process for a full socket; beyond it datagrams are dropped. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** Peers whose links are remembered; with one more all are forgotten. */
const MOST_LINKS = 4096;

class PlainSocket implements DatagramSocket {
  readonly port: number;
  readonly fd: number;
  readonly isLendable = false;
  readonly #socket: Socket;
  readonly #isV6: boolean;
  /** Link-local peers as the runtime writes them, with their links: an answer goes there. */
  readonly #links = new Map<Ip, string>();
  readonly #on: OnDatagram;
  #open = true;

  constructor(socket: Socket, on: OnDatagram) {
    const { port, family } = socket.address();
    this.#socket = socket;
    this.port = port;
    this.fd = datagramDescriptorOf(socket);
    this.#isV6 = family === "IPv6";
    this.#on = on;
  }

  begin(): void {
    this.#socket.on("message", (payload, { address, port }) => {
      const ip = socketIp(address);
      if (address.includes("%")) this.#keepLink(ip, address);
      this.#on(payload, { ip, port }, 0);
    });
  }

  #keepLink(ip: Ip, address: string): void {
    if (this.#links.size >= MOST_LINKS) this.#links.clear();
    this.#links.set(ip, address);
  }

  pause(): void {
    this.#socket.removeAllListeners("message"); // what comes by the runtime is dropped
  }

  send(head: Uint8Array | null, payload: Uint8Array, ip: Ip, port: number): void {
    if (!this.#open || port === 0 || this.#socket.getSendQueueSize() > MAX_QUEUED_BYTES) return;
    const bytes = head === null ? Buffer.from(payload) : Buffer.concat([head, payload]); // the runtime may keep it
    const address = this.#isV6 && familyOf(ip) === 4 ? `::ffff:${ip}` : (this.#links.get(ip) ?? ip);
    this.#socket.send(bytes, port, address, ignore);
  }

  sendRun(payloads: Uint8Array, size: number, ip: Ip, port: number): void {
    for (let at = 0; at < payloads.length; at += size)
      this.send(null, payloads.subarray(at, at + size), ip, port);
  }

  useEcn(): boolean {
    return false;
  }

  sieve(): boolean {
    return false;
  }

  admitOthers(): boolean {
    return false;
  }

  chooseBy(): boolean {
    return false;
  }

  close(): void {
    if (this.#open) this.#socket.close();
    this.#open = false;
  }
}

/** With a callback an error of one datagram (too long, unreachable) does not become an event. */
function ignore(): void {}

class BatchedSocket implements DatagramSocket {
  readonly port: number;
  readonly fd: number;
  readonly isLendable = true;
  readonly #batches: DatagramBatches;
  readonly #outgoing: Outgoing;
  readonly #isV6: boolean;
  readonly #names: PeerNames;
  readonly #on: OnDatagram;
  readonly #watch: ReadinessWatch;
  readonly #batchesInATurn: number;
  readonly #refuses: Refuses;
  #refused = 0;
  #open = true;

  /** `fd` is its own from here on, another one of the same socket. Throws where that cannot be watched. */
  constructor(
    socket: Socket,
    fd: number,
    batches: DatagramBatches,
    { on, batchesInATurn, refuses }: Required<TakeOptions> & { readonly on: OnDatagram },
  ) {
    const { port, family } = socket.address();
    this.port = port;
    this.#isV6 = family === "IPv6";
    this.#names = new PeerNames(this.#isV6);
    this.#on = on;
    this.#batchesInATurn = batchesInATurn;
    this.#refuses = refuses;
    this.#batches = batches;
    this.fd = fd;
    this.#outgoing = batches.send.open(fd);
    this.#watch = batches.poller.watchReadiness(fd, () => this.#read());
    socket.close(); // from here on the runtime reads nothing of it
  }

  begin(): void {
    this.#watch.want(UV_READABLE);
  }

  pause(): void {
    this.#watch.want(0);
  }

  /** One batch a turn, where nothing else was asked for: others have theirs, and what it made goes out before the next one. */
  #read(): void {
    let mayRefuse = MOST_REFUSED_BATCHES;
    for (let left = this.#batchesInATurn; left > 0 && this.#open;) {
      this.#refused = 0;
      if (!this.#batches.receive.read(this.fd, this.#give)) return;
      if (this.#refused < REFUSED_IN_BATCH || mayRefuse-- === 0) left--;
    }
  }

  readonly #give = (payload: Buffer, name: Uint8Array, { ecn }: Control): void => {
    if (this.#refuses(payload)) return void this.#refused++;
    const from = this.#open ? this.#names.endpointOf(name) : null;
    if (from !== null) this.#on(payload, from, ecn);
  };

  send(head: Uint8Array | null, payload: Uint8Array, ip: Ip, port: number, isMarked = false): void {
    if (!this.#open || port === 0) return; // the kernel would refuse port 0
    this.#batches.send.put(this.#outgoing, head, payload, this.#names.nameOf(ip, port), isMarked);
  }

  sendRun(payloads: Uint8Array, size: number, ip: Ip, port: number, isMarked = false): void {
    if (!this.#open || port === 0) return;
    this.#batches.send.putRun(this.#outgoing, payloads, size, this.#names.nameOf(ip, port), isMarked);
  }

  useEcn(): boolean {
    return this.#open && this.#batches.tellMarks(this.fd, this.#isV6);
  }

  sieve(program: SocketProgram | null): boolean {
    return this.#open && this.#batches.sieve(this.fd, program);
  }

  admitOthers(): boolean {
    return this.#open && this.#batches.admitOthers(this.fd);
  }

  chooseBy(program: SocketProgram): boolean {
    return this.#open && this.#batches.chooseBy(this.fd, program);
  }

  close(): void {
    if (!this.#open) return;
    this.#batches.send.flush(); // what was said before goes out
    this.#open = false;
    this.#watch.close();
    this.#batches.close(this.fd);
  }
}
