import type { RelayCalls } from "#platform/linux/relay-calls.ts";

/** Who has its turn for so long lets others have theirs: what a piece takes is up to the peer, which may send frames without content. */
export const LONGEST_TURN_MS = 10;

/** What the wires of one worker share. */
export interface WireIo {
  readonly calls: RelayCalls;
  /** Bytes that were read or sealed and found no room in a socket, of all connections of the worker. */
  bufferedBytes: number;
  /** When a wire wants its turn though nothing happens to its socket: the earliest by `performance.now()`; Infinity: never. */
  wakeAtMs: number;
}

/**
 * One side of a connection as a worker sees it: plain bytes on this side, and on the other a socket with what travels
 * there: the same bytes, TLS records, sealed chunks. Counts are of plain bytes; errors are errnos as negative numbers,
 * EAGAIN when nothing can be done until `onEvents`, EINTR when the next try may get further. Nothing throws.
 */
export interface Wire {
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
  /** The same, where the bytes that come are the plain ones and may go past this program; else -1. */
  readonly bareSource: number;
  /** The same of the bytes that go. */
  readonly bareTarget: number;
  /** A failure of its socket is its own to see: it may go on by another one. */
  readonly outlivesSocket?: boolean;
  /** Once, before all else: it may ask for a turn. */
  begin?(io: WireIo): void;
  /** Asks again for the turn that is still to come: the loop keeps one time of a slot, and may have granted an earlier one. */
  remind?(io: WireIo): void;
  /** Puts up to `size` bytes at the start of the thread's buffer; 0 at the end. At most `BUFFER_BYTES` may be asked for. */
  read(io: WireIo, size: number): number;
  /** How many bytes `read` may find, more or less, with nothing read; 0 at the end. */
  available(io: WireIo): number;
  /**
   * Takes bytes from the start of the thread's buffer, which it may use up doing so, and answers with how many: they are
   * its own from then on. Those not taken must lie in the buffer as they were. Fewer than `size`:
   * `writable` is false, or the rest is to be given again at once.
   */
  write(io: WireIo, size: number): number;
  /** Before bytes go to `bareTarget` in another way: none is to wait for the acknowledgement of others. */
  onBulk?(io: WireIo): void;
  /** Passes on what is pending: wire bytes taken, more than 0, or an errno. */
  flush(io: WireIo): number;
  /** Says that no more follows. 0, EAGAIN (to be called again once writable), or another errno. */
  endWriting(io: WireIo): number;
  /** Once its end was read: its far side has ended both directions, and has waited long enough for ours to end, too. */
  isOver?(io: WireIo): boolean;
  /** Nothing that still comes is wanted: an end that waits for it is said at once. */
  onUnwanted?(): void;
  /** The kernel's events of its socket, epoll(7) bits. */
  onEvents(events: number): void;
  /**
   * Takes back bytes that it has read and the other side has not taken, when the connection goes back by `HANDS_BACK`.
   */
  unread?(bytes: Uint8Array): void;
  /** Frees what it holds, the descriptor apart, which is the loop's. */
  drop(io: WireIo): void;
}

/** The result of a wire that cannot continue: the main thread can, with both sockets. No errno. */
export const HANDS_BACK = -10_020;
