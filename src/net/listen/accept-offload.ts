/** Threads that accept in the place of the event loop, as the pool of listening sockets knows them. */
import type { TlsContextSource, WorkerConnection, PlainHandshake, TlsWorkerConnection } from "#core/held.ts";
import type { StreamSocket } from "#core/sockets.ts";

export interface PlainAcceptOptions {
  readonly handshake: PlainHandshake;
  /** A client that a thread has understood. */
  on(client: WorkerConnection): void;
}

export interface TlsAcceptOptions {
  readonly handshake: "tls";
  readonly contexts: TlsContextSource;
  /** A client with which a thread has begun to shake hands. */
  on(client: TlsWorkerConnection): void;
}

/** What threads may do about connections. */
export type AcceptOptions = (PlainAcceptOptions | TlsAcceptOptions) & {
  /** Connections are probed from their beginning; null: they are not. */
  readonly probes: { readonly idleMs: number; readonly intervalMs: number } | null;
};

export type AcceptRequest = AcceptOptions & {
  /** A client that a thread had understood was not for threads, and has been taken. Absent: nobody counts. */
  onTaken?(): void;
  /** Any other; `isGreeted`: a SOCKS5 client has been told that it need not say who it is. */
  onSocket(socket: StreamSocket, isGreeted: boolean): void;
};

export interface AcceptOffload {
  /** A second descriptor of a socket, the caller's; negative: none is left. */
  duplicate(fd: number): number;
  close(fd: number): void;
  /** Connections of the listening socket come by threads from now on; the descriptor stays the caller's. Null: they cannot. */
  listen(fd: number, ask: AcceptRequest): OffloadedListener | null;
}

export interface OffloadedListener {
  /**
   * Nothing of what the kernel queues is taken any more, or, with `drains`, only what it has queued now. Settles when
   * nobody comes any more; clients in a handshake have come by then.
   */
  stop(drains: boolean): Promise<void>;
}
