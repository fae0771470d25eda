/** A bound UDP socket: by the runtime one datagram at a time, or in batches where the system can. */
import type { Socket } from "node:dgram";
import type { Endpoint, Ip } from "#core/session.ts";
import {
  BATCH,
  decodeSockaddr,
  encodeSockaddr,
  AF_INET,
  openBatchedDatagrams,
  SOCKADDR_BYTES,
  type BatchedDatagrams,
  type Watch,
} from "#platform/datagrams.ts";
import { datagramDescriptorOf } from "./datagram-descriptor.ts";
import { bytesOfIp, familyOf, ipFromBytes, socketIp } from "./ip.ts";

/** To be asked for with every socket: a burst must find room while the event loop is busy. The system may give less. */
export const BUFFERS = { recvBufferSize: 1024 * 1024, sendBufferSize: 1024 * 1024 };

/** `payload` belongs to the receiver. */
export type OnDatagram = (payload: Buffer, from: Endpoint) => void;

export interface DatagramSocket {
  readonly port: number;
  /** One datagram made of `parts`, which stay as they are for this turn of the event loop. Never waits and may drop. */
  send(parts: readonly Uint8Array[], to: Endpoint): void;
  close(): void;
}

/** What the sockets of one owner share: the memory of the batches, made when the first socket comes. */
export class DatagramSockets {
  readonly #open: () => BatchedDatagrams | null;
  #batched: BatchedDatagrams | null | undefined;

  /** `open` answers null where datagrams are to come and go one at a time. */
  constructor(open: () => BatchedDatagrams | null = openBatchedDatagrams) {
    this.#open = open;
  }

  /** Takes a bound socket over, which has an 'error' listener. Throws where no descriptor is left. */
  take(socket: Socket, on: OnDatagram): DatagramSocket {
    const batched = (this.#batched ??= this.#open());
    const fd = batched === null ? -1 : datagramDescriptorOf(socket);
    return batched === null || fd < 0
      ? new PlainSocket(socket, on)
      : new BatchedSocket(socket, fd, batched, on);
  }
}

/** Bytes that wait in the process for a full socket; beyond it datagrams are dropped. */
const MAX_QUEUED_BYTES = 1024 * 1024;

class PlainSocket implements DatagramSocket {
  readonly port: number;
  readonly #socket: Socket;
  readonly #isV6: boolean;
  #open = true;

  constructor(socket: Socket, on: OnDatagram) {
    const { port, family } = socket.address();
    this.#socket = socket;
    this.port = port;
    this.#isV6 = family === "IPv6";
    socket.on("message", (payload, from) => on(payload, { ip: socketIp(from.address), port: from.port }));
  }

  send(parts: readonly Uint8Array[], { ip, port }: Endpoint): void {
    if (!this.#open || port === 0 || this.#socket.getSendQueueSize() > MAX_QUEUED_BYTES) return;
    this.#socket.send(parts, port, this.#isV6 && familyOf(ip) === 4 ? `::ffff:${ip}` : ip, ignore);
  }

  close(): void {
    if (this.#open) this.#socket.close();
    this.#open = false;
  }
}

/** With a callback an error of one datagram (too long, unreachable) does not become an event. */
function ignore(): void {}

/** Batches that one readiness may bring before others have their turn. */
const BATCHES_A_TURN = 4;
const NOWHERE = { ip: "" as Ip, port: -1 };

class BatchedSocket implements DatagramSocket {
  readonly port: number;
  readonly #fd: number;
  readonly #isV6: boolean;
  readonly #batched: BatchedDatagrams;
  readonly #watch: Watch;
  /** Waiting for the end of this turn; at `BATCH` they go at once. */
  #parts: (readonly Uint8Array[])[] = [];
  #to: Endpoint[] = [];
  #open = true;
  readonly #flush = (): void => this.#sendAll();
  // Most datagrams come from and go to where the one before did.
  readonly #fromName = new Uint8Array(SOCKADDR_BYTES);
  #from: Endpoint = NOWHERE;
  readonly #toName = new Uint8Array(SOCKADDR_BYTES);
  #toLength = 0;
  #lastTo: Endpoint = NOWHERE;

  constructor(socket: Socket, fd: number, batched: BatchedDatagrams, on: OnDatagram) {
    const { port, family } = socket.address();
    this.port = port;
    this.#isV6 = family === "IPv6";
    this.#batched = batched;
    this.#fd = batched.batch.duplicate(fd);
    socket.close(); // from here on the runtime reads nothing of it
    const give = (payload: Buffer, name: Uint8Array): void => {
      const from = this.#open ? this.#endpointOf(name) : null;
      if (from !== null) on(payload, from);
    };
    this.#watch = batched.poller.watch(this.#fd, () => {
      for (let count = 0; count < BATCHES_A_TURN && this.#open; count++)
        if (batched.batch.read(this.#fd, give) < BATCH) return;
    });
  }

  #endpointOf(name: Uint8Array): Endpoint | null {
    if (this.#from !== NOWHERE && sameName(name, this.#fromName)) return this.#from;
    const raw = decodeSockaddr(name);
    if (raw === null) return null;
    this.#fromName.set(name);
    return (this.#from = { ip: ipFromBytes(raw.address), port: raw.port });
  }

  send(parts: readonly Uint8Array[], to: Endpoint): void {
    if (!this.#open || to.port === 0) return; // the kernel would refuse port 0
    if (this.#to.length === 0) setImmediate(this.#flush);
    this.#parts.push(parts);
    this.#to.push(to);
    if (this.#to.length === BATCH) this.#sendAll();
  }

  #sendAll(): void {
    if (!this.#open || this.#to.length === 0) return;
    const { batch } = this.#batched;
    let count = 0;
    for (const [at, to] of this.#to.entries()) {
      this.#name(to);
      if (batch.put(count, this.#parts[at] ?? [], this.#toName, this.#toLength)) count++;
    }
    batch.flush(this.#fd, count);
    this.#parts = [];
    this.#to = [];
  }

  #name(to: Endpoint): void {
    if (to.port === this.#lastTo.port && to.ip === this.#lastTo.ip) return;
    const bytes = bytesOfIp(to.ip);
    const address = this.#isV6 && bytes.length === 4 ? Uint8Array.of(...MAPPED, ...bytes) : bytes;
    this.#toLength = encodeSockaddr(this.#toName, { address, port: to.port });
    this.#lastTo = to;
  }

  close(): void {
    if (!this.#open) return;
    this.#sendAll(); // what was said before goes out
    this.#open = false;
    this.#watch.close();
    this.#batched.batch.close(this.#fd);
  }
}

/** RFC 4291 §2.5.5.2. */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** Of an IPv4 name only family, port and address count; what lies behind them is older. */
function sameName(a: Uint8Array, b: Uint8Array): boolean {
  const length = (a[0] as number) + (a[1] as number) === AF_INET ? 8 : SOCKADDR_BYTES;
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return false;
  return true;
}
