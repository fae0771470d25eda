import type { AddressInfo, Server, Socket } from "node:net";
import type { Datagram, Endpoint } from "./session.ts";

/**
 * Emitted by an accepted socket that was destroyed because its descriptor has another owner: with the stream that is to
 * be destroyed in its place, at the end of the program.
 */
export const REPLACED = "replaced";

/** A kernel TCP socket. Named here so that `core` says which concrete class the fast path can take over. */
export type StreamSocket = Socket;

/** Classic BPF (linux/filter.h): operation, jumps if true and if false, value. What it answers with 0 is dropped. */
export type SocketProgram = readonly (readonly [number, number, number, number])[];

/** A bound UDP socket that clients write to. */
export interface DatagramListener {
  readonly local: Endpoint;
  /**
   * Begins to read; a later call replaces the receiver, which must not throw. `payload` is lent until it returns; `from`
   * is the same object for the same client, in most cases. `refuses` is asked before anything else is done with a datagram,
   * and says which ones are dropped, at little cost; absent: none. `ecn`: as of `Datagram`.
   */
  receive(
    on: (payload: Buffer, from: Endpoint, ecn: number) => void,
    refuses?: (payload: Uint8Array) => boolean,
  ): void;
  /** Sends a copy, marked ECT(0) where that is wanted and `useEcn` has said yes. Never waits, and may drop. */
  send(payload: Uint8Array, to: Endpoint, isMarked?: boolean): void;
  /** The same of several that lie behind each other, each of `size` bytes but for the last, which may be shorter. */
  sendRun(payloads: Uint8Array, size: number, to: Endpoint, isMarked?: boolean): void;
  /** From now on the marks of what comes are read. False, or absent: this system cannot. */
  useEcn?(): boolean;
  /**
   * Has the kernel run a program over each datagram before it is queued, its UDP header in front; null: none any more. False,
   * or absent: this system cannot.
   */
  sieve?(program: SocketProgram | null): boolean;
  /**
   * Another thread reads and writes by the same socket until `receive` or `takeBack`, or the close, which waits for it. Absent
   * or null: it cannot.
   */
  lend?(reader: SocketReader): LentSocket | null;
  /** Calls `on`, which must not throw, when the socket is about to close: what it sends still goes out. */
  beforeClose(on: () => void): void;
  /** Settles when the socket is closed. */
  readonly closed: Promise<void>;
}

/** Who reads a socket that is lent. */
export interface SocketReader {
  /** Reads no more, and writes on. */
  pause(): void;
  /** Reads and writes no more, once what it says last is out. Resolves when its own descriptor is closed. */
  close(): Promise<void>;
}

export interface LentSocket {
  /** The owner's. */
  readonly fd: number;
  /** The reader is gone. False: so is the socket. */
  takeBack(): boolean;
  /**
   * Binds as many more sockets to the same address, for further readers. The program is shown each payload and answers which
   * one gets it: 0 is this one, the others follow; where it names none, always the same gets what comes from the same address.
   * Null: the system refuses, or the port is shared already. Once.
   */
  share(count: number, program: SocketProgram): Promise<readonly SharedSocket[] | null>;
}

/** The caller's. */
export interface SharedSocket {
  readonly fd: number;
  close(): void;
}

/** What a transparent socket took off the wire, lent until the receiver returns; `destination` is where it was going. */
export interface CapturedDatagram extends Datagram {
  readonly source: Endpoint;
  /** DSCP code point, 0–63. */
  readonly dscp: number | null;
}

/** A UDP socket that receives what was on its way to others (tproxy). */
export interface TransparentSocket {
  readonly local: Endpoint;
  /** Begins to read; a later call replaces the receiver, which must not throw. */
  receive(on: (item: CapturedDatagram) => void): void;
  /**
   * A socket that sends as if it were `from`, with a mark (SO_MARK) that is not 0. Throws where the system refuses the
   * address; the caller closes it.
   */
  replyAs(from: Endpoint, mark: number): ReplySocket;
  /** Settles when the socket is closed. */
  readonly closed: Promise<void>;
}

export interface ReplySocket {
  /** Never waits and keeps nothing; what the kernel does not take, or an address of the other family, is lost. */
  send(payload: Uint8Array, to: Endpoint): void;
  close(): void;
}

/** Where a server listens that is open; throws an Error where it is closed, or listens at a path. */
export function boundAddress(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new Error(`a server is asked for its port, and listens at ${address ?? "nothing"}`);
  return address;
}
