import type { Io } from "./conversation.ts";

/**
 * One side of a conversation as a relay thread sees it: plain bytes on this side, and on the other a socket with what
 * travels there: the same bytes, TLS records, sealed chunks. Counts are of plain bytes; errors are errnos as negative
 * numbers, EAGAIN where nothing can be done until `notice`, EINTR where the next try may get further. Nothing throws.
 */
export interface Port {
  /** Reading may give something. The port itself clears it when it finds nothing, and sets it by `notice`. */
  readable: boolean;
  /** Writing may get rid of something; likewise. */
  writable: boolean;
  /** The socket has ended or failed. */
  readonly hungUp: boolean;
  /** It took plain bytes and still holds what the socket has not taken of them: `flush` goes before `write` and `endWriting`. */
  readonly pending: boolean;
  /** The socket. */
  readonly fd: number;
  /** The same, where its bytes are the plain ones and may go past this program; else -1. */
  readonly bareSocket: number;
  /** Puts up to `size` bytes at the start of the thread's buffer; 0 at the end. At most `BUFFER_BYTES` may be asked for. */
  read(io: Io, size: number): number;
  /** How many bytes `read` may find, more or less, with nothing read; 0 at the end. */
  available(io: Io): number;
  /**
   * Takes bytes from the start of the thread's buffer, which it may use up doing so, and answers with how many: they are
   * its own from then on. Those not taken must lie in the buffer as they were. Fewer than `size`: `writable` is false.
   */
  write(io: Io, size: number): number;
  /** Before bytes go to `bareSocket` in another way: none is to wait for the acknowledgement of others. */
  hurry?(io: Io): void;
  /** Passes on what is pending: wire bytes taken, more than 0, or an errno. */
  flush(io: Io): number;
  /** Says that no more follows. 0, EAGAIN (to be called again once writable), or another errno. */
  endWriting(io: Io): number;
  /** The kernel's news of its socket, epoll(7) bits. */
  notice(events: number): void;
  /** Takes what it has read and the other side has not taken, where the conversation goes back by its `RETURNS`. */
  unread?(bytes: Uint8Array): void;
  /** Frees what it holds, the descriptor apart, which is the loop's. */
  drop(io: Io): void;
}

/** An answer of a port that cannot go on: the main thread can, with both sockets. No errno. */
export const RETURNS = -10_020;

/** Of what a conversation is made, per side: kept in the shared table as a number. */
export const PLAIN = 0;
export const TLS = 1;
export const SEALED = 2;
export const ANYTLS = 4;
/** Written in its place by a port whose socket is not to be closed at the end: the main thread has further use for it. */
export const SPARED = 3;
export type PortKind = typeof PLAIN | typeof TLS | typeof SEALED | typeof ANYTLS;

/** Numbers that a kind of port is told at its start; addresses of this process fit into a double. */
export const PORT_WORDS = 8;

/** How the main thread describes a port to the relay thread. */
export interface PortPlan {
  readonly kind: PortKind;
  /** The relay thread's own from the moment that it is added. */
  readonly fd: number;
  /** At most `PORT_WORDS`; their meaning is the kind's. */
  readonly words: readonly number[];
  /** Bytes for the port, whatever they are to it (read from the socket and not opened yet); null: none. */
  readonly letter: Uint8Array | null;
}
