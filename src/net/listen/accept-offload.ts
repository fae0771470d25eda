/** Workers that accept in place of the event loop, as the pool of listening sockets knows them. */
import type { AcceptedConnection, Handshake, LeftToDest, Switched } from "#core/accepted.ts";
import type { StreamSocket } from "#core/sockets.ts";
import type { ListenerContext } from "./accept.ts";

/** What is done with the connections of a listening socket. */
export type AcceptOptions = Handshake & {
  /** Connections are probed from their beginning; null: they are not. */
  readonly probes: { readonly idleMs: number; readonly intervalMs: number } | null;
  /** What the sessions of its connections have in common. Absent: workers decide none of them. */
  readonly context?: ListenerContext;
  /** Owns the connection. */
  onAccepted(connection: AcceptedConnection): void;
};

/** What a worker has answered of the handshake of a connection that it passes on. */
export interface Answered {
  /** So much of the handshake's answer was sent, and the question is unread. */
  readonly repliedBytes: number;
  /** As `AcceptedConnection` has them. */
  readonly switched: Switched | null;
  readonly left?: LeftToDest;
}

export const NOT_ANSWERED: Answered = { repliedBytes: 0, switched: null };

/** The same for workers, which pass on what they cannot serve. */
export type OffloadOptions = AcceptOptions & {
  /** A connection that a worker had read was taken from it. Absent: it is not counted. */
  onTaken?(): void;
  /** A connection was served without a look from here. Absent: it is not counted. */
  onDecided?(): void;
  /** Nothing was read from this connection but what was answered. */
  onSocket(socket: StreamSocket, answered: Answered): void;
};

export interface AcceptOffload {
  /** A second descriptor of a socket, the caller's; negative: none is left. */
  duplicate(fd: number): number;
  close(fd: number): void;
  /**
   * From now on workers accept the connections of the listening socket; its descriptor stays the caller's. Null: they
   * cannot.
   */
  listen(fd: number, options: OffloadOptions): OffloadedListener | null;
}

export interface OffloadedListener {
  /**
   * Ends accepting; with `drains`, after what the kernel has queued now is taken. Settles when no connection will
   * arrive any more; those in a handshake have arrived by then.
   */
  stop(drains: boolean): Promise<void>;
}
