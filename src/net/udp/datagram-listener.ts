/** UDP sockets that listen, in batches where the system can. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { errnoOf } from "#core/errors.ts";
import type { Endpoint } from "#core/session.ts";
import type { DatagramListener, SocketProgram, SocketReader } from "#core/sockets.ts";
import { datagramDescriptorOf } from "./datagram-descriptor.ts";
import {
  BUFFERS,
  type DatagramSocket,
  type DatagramSockets,
  type OnDatagram,
  type Refuses,
} from "./datagram-socket.ts";
import { sharePort } from "./shared-port.ts";
import { ANY_V4, ANY_V6, familyOf, socketIp } from "#net/address/ip.ts";

export interface OpenedDatagrams {
  readonly socket: DatagramListener;
  readonly fd: number;
  /** Reads no more, and sends on. */
  pause(): void;
  /** The opposite. */
  resume(): void;
  /** `socket.closed` settles when no other thread has it any more. */
  close(): void;
}

export interface DatagramsAsk {
  readonly at: Endpoint;
  readonly reusePort: boolean;
  /** A descriptor that is bound already, and owned from here on; null, absent: none. */
  readonly inherited?: number | null;
  /** As of `DatagramSockets.take`; absent: 1. */
  readonly batchesInATurn?: number;
  /** Before anything is read; what it throws is thrown, and the socket closed. */
  configure(fd: number): void;
}

/**
 * Throws the system's error when the socket cannot be bound. What comes before the first `receive` waits in the kernel
 * where datagrams come in batches, and is dropped elsewhere.
 */
export async function openDatagrams(ask: DatagramsAsk, sockets: DatagramSockets): Promise<OpenedDatagrams> {
  try {
    return await openAt(ask.at, ask, sockets);
  } catch (error) {
    // A machine without IPv6: "all families" is IPv4 then.
    if (ask.at.ip !== ANY_V6 || errnoOf(error) !== "EAFNOSUPPORT") throw error;
    return openAt({ ...ask.at, ip: ANY_V4 }, ask, sockets);
  }
}

async function openAt(
  at: Endpoint,
  { reusePort, inherited = null, batchesInATurn = 1, configure }: DatagramsAsk,
  sockets: DatagramSockets,
): Promise<OpenedDatagrams> {
  const socket = createSocket({ type: familyOf(at.ip) === 6 ? "udp6" : "udp4", reusePort, ...BUFFERS });
  try {
    const listening = once(socket, "listening");
    if (inherited !== null) socket.bind({ fd: inherited });
    else socket.bind({ address: at.ip, port: at.port, exclusive: true });
    // By a descriptor it is bound at once, and read: what comes must not come before its receiver.
    if (inherited === null) await listening;
    configure(datagramDescriptorOf(socket));
  } catch (error) {
    socket.close();
    throw error;
  }
  socket.on("error", () => {
    // An ICMP error for one peer; the socket continues for the others.
  });
  const { address, port } = socket.address();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let receiver: OnDatagram | null = null;
  let refuses: Refuses = () => false;
  const closing: (() => void)[] = [];
  let reader: SocketReader | null = null;
  let isReading = false;
  let isOpen = true;
  const bound: DatagramSocket = sockets.take(socket, (payload, from, ecn) => receiver?.(payload, from, ecn), {
    batchesInATurn,
    refuses: (payload) => refuses(payload),
  });
  const parts = { first: bound, at: { ip: at.ip, port }, sockets, configure };
  return {
    socket: {
      local: { ip: socketIp(address), port },
      receive(on, refused = () => false) {
        void reader?.close();
        reader = null;
        receiver = on;
        refuses = refused;
        if (!isReading) bound.begin();
        isReading = true;
      },
      lend(next) {
        if (!bound.isLendable || !isOpen) return null;
        bound.pause();
        isReading = false;
        reader = next;
        const takeBack = (): boolean => {
          if (reader === next) reader = null;
          return isOpen;
        };
        const share = (count: number, program: SocketProgram) =>
          reusePort ? Promise.resolve(null) : sharePort(parts, count, program);
        return { fd: bound.fd, takeBack, share };
      },
      send: (payload, { ip, port: to }, isMarked) => bound.send(null, payload, ip, to, isMarked),
      sendRun: (payloads, size, { ip, port: to }, isMarked) =>
        bound.sendRun(payloads, size, ip, to, isMarked),
      useEcn: () => bound.useEcn(),
      sieve: (program) => bound.sieve(program),
      beforeClose: (on) => void closing.push(on),
      closed,
    },
    fd: bound.fd,
    pause() {
      reader?.pause();
      bound.pause();
      isReading = false;
    },
    resume() {
      if (!isReading && isOpen) bound.begin();
      isReading = true;
    },
    close() {
      isOpen = false;
      for (const on of closing.splice(0)) on();
      const finish = (): void => {
        bound.close();
        resolve();
      };
      if (reader === null) finish();
      else void reader.close().then(finish);
    },
  };
}
