/** Threads that accept in the place of the event loop, as the pool of listening sockets knows them. */
import type { ContextSource, HeldClient, PlainHandshake, ShakenClient } from "#core/held.ts";
import type { StreamSocket } from "#core/sockets.ts";

export interface PlainShare {
  readonly handshake: PlainHandshake;
  /** A client that a thread has understood. */
  on(client: HeldClient): void;
}

export interface TlsShare {
  readonly handshake: "tls";
  readonly contexts: ContextSource;
  /** A client with which a thread has begun to shake hands. */
  on(client: ShakenClient): void;
}

/** What threads may do about connections. */
export type FrontShare = (PlainShare | TlsShare) & {
  /** Connections are probed from their beginning; null: they are not. */
  readonly probes: { readonly idleMs: number; readonly intervalMs: number } | null;
};

export type FrontAsk = FrontShare & {
  /** A client that a thread had understood was not for threads, and has been taken. Absent: nobody counts. */
  onTaken?(): void;
  /** Any other; `isGreeted`: a SOCKS5 client has been told that it need not say who it is. */
  onSocket(socket: StreamSocket, isGreeted: boolean): void;
};

export interface FrontThreads {
  /** A second descriptor of a socket, the caller's; negative: none is left. */
  duplicate(fd: number): number;
  close(fd: number): void;
  /** Connections of the listening socket come by threads from now on; the descriptor stays the caller's. Null: they cannot. */
  listen(fd: number, ask: FrontAsk): FrontListening | null;
}

export interface FrontListening {
  /**
   * Nothing of what the kernel queues is taken any more, or, with `drains`, only what it has queued now. Settles when
   * nobody comes any more; clients in a handshake have come by then.
   */
  stop(drains: boolean): Promise<void>;
}
