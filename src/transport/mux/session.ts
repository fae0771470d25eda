import type { Duplex } from "node:stream";
import type { Log } from "#core/log.ts";

/** Many conversations in one connection. It owns the connection. */
export interface MuxSession {
  /** How many conversations are open. */
  readonly streams: number;
  /** False: ended, about to end, or out of numbers for streams. */
  readonly usable: boolean;
  /** No further conversations; ends with the last. */
  retire(): void;
  /** Ends it with all conversations. */
  close(error: Error | null): void;
}

/** A session whose conversations say inside themselves where they go. */
export interface OpenMuxSession extends MuxSession {
  /** Opens a conversation; nothing is awaited. Client only, and only while `usable`. */
  open(): Duplex;
}

export interface MuxEvents {
  /** A conversation that the peer opened; its first bytes are still unread. Servers only. */
  readonly onStream: ((stream: Duplex) => void) | null;
  /** Once, after the last conversation is gone. */
  readonly onClosed: () => void;
  readonly log: Log;
}

/** One peer may hold so many conversations in one connection; one more is refused, the connection stays. */
export const MAX_STREAMS = 1024;
/** A client's session without conversations is closed after so long: shorter than what peers' servers wait. */
export const CLIENT_IDLE_MS = 25_000;
/** A server's: long, because it is the client who knows whether it will come again. */
export const SERVER_IDLE_MS = 300_000;
