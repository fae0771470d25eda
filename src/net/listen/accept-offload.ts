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
  /**
   * Called for a client that a worker had parsed, whose request needs the main thread after all. Absent: not counted.
   */
  onTaken?(): void;
  /**
   * Called for any other client; `isGreeted`: a SOCKS5 client already has the reply that no authentication is needed.
   */
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
   * Accepts none of the connections that the kernel queues any more, or, with `drains`, only those that it has queued
   * now. Settles when none will come any more; clients in a handshake have been handed over by then.
   */
  stop(drains: boolean): Promise<void>;
}
