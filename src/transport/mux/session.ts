import type { Duplex } from "node:stream";
import type { Log } from "#core/log.ts";

/** Many streams in one connection. The session owns the connection. */
export interface MuxSession {
  /** Number of open streams. */
  readonly streams: number;
  /** False: ended, about to end, or out of numbers for streams. */
  readonly usable: boolean;
  /** Opens no further streams; the session ends with its last one. */
  retire(): void;
  /** Ends the session and all its streams. */
  close(error: Error | null): void;
}

/** A session whose streams carry their destination inside. */
export interface OpenMuxSession extends MuxSession {
  /** Opens a stream, of which the peer may hear with its first bytes only. Client only, and only while `usable`. */
  open(): Duplex;
}

export interface MuxEvents {
  /** A stream that the peer opened, with its first bytes still unread. Servers only. */
  readonly onStream: ((stream: Duplex) => void) | null;
  /** Called once, after the last stream has closed. */
  readonly onClosed: () => void;
  readonly log: Log;
}

/** Streams that one peer may have open in one connection; a further one is refused, the connection stays. */
export const MAX_STREAMS = 1024;
/**
 * A client's session without streams is closed after this time, which is shorter than the idle timeout of the known
 * servers.
 */
export const CLIENT_IDLE_MS = 25_000;
/** Idle timeout of a server's session: long, because the client decides whether it will use the session again. */
export const SERVER_IDLE_MS = 300_000;
/**
 * Bytes of all streams of a session that wait for slow readers, where streams have no windows. Beyond this the connection is
 * not read, so the peer is slowed down.
 */
export const MAX_HELD_BYTES = 8 << 20;
/** It is read again once so much less waits. */
export const ROOM_BYTES = 4 << 20;
/** How often smux and yamux say that they are there, and see whether their session is idle. */
export const TICK_MS = 15_000;
/** Numbers of streams are never used again; a session of smux or yamux that has come so far takes no more. */
export const LAST_ID = 0xffff_fffd;
/** By then a stream has said where it leads to, or a server ends it. */
export const REQUEST_TIMEOUT_MS = 60_000;
