/** What the sessions of clients have in common, whatever their frames are. */
import type { PendingEntry } from "#net/listen/pending-limiter.ts";
import type { Wire } from "./wire.ts";

/** A stream of such a session, in a slot of its own once it has said where it leads to. */
export interface KeptClientStream extends Wire {
  /** -1: it has none yet, or any more. */
  slot: number;
  /** Where it leads to, as the session's protocol has it; the main thread is shown it. */
  readonly request: Uint8Array;
  /** So many bytes of that were understood, and are not payload: how many it takes away. */
  consume(size: number): number;
  /** What relays it says in front of all else what its dial came to, in place of the stream itself. */
  awaitAnswer(): void;
  drop(): void;
}

/** What the thread does for a session. */
export interface KeptSessionHost {
  /** A stream is waited for that has said nothing. With too many of them the oldest gives way; `hears` ends the wait. */
  awaits(giveWay: () => void): PendingEntry;
  hears(one: PendingEntry): void;
  /** A stream has said where it leads to. False: there is no room for it. */
  onStream(stream: KeptClientStream): boolean;
  /** The session wants a turn. */
  wake(): void;
  /** What relays the stream, or is about to, is to look at it again; `events` are epoll(7) bits. */
  wakeStream(slot: number, events: number): void;
}
