/** What the main thread hands to a worker at its start, and the messages between them beside the rings. */
import type { PendingBounds } from "#net/listen/pending-limiter.ts";
import type { MessagePort } from "node:worker_threads";
import type { WireRemainder } from "#core/wire-state.ts";

/**
 * Clients of all threads together without a request, or in their TLS handshake: beyond that the oldest ones are
 * closed, those of a source that has half of it first.
 */
export const PENDING_BOUNDS: PendingBounds = { count: 8192, bytes: 128 * 1024 * 1024 };

export interface ThreadData {
  readonly table: SharedArrayBuffer;
  readonly accepts: SharedArrayBuffer;
  readonly pipes: SharedArrayBuffer;
  /** Bytes that go with wires, in the order in which these are added. */
  readonly messages: MessagePort;
  /** `DecisionData`, each behind a command that says so. */
  readonly decisions: MessagePort;
  /** Of a `VersionWord`. */
  readonly version: SharedArrayBuffer;
  /** Of clients that have not authenticated yet. */
  readonly unauthenticated: PendingBounds;
  /** How many threads accept clients. */
  readonly threads: number;
  /** Of a thread of QUIC: `ToThread` comes, `FromThread` goes. */
  readonly quic?: MessagePort;
  /** Of tests only; see seams.ts. */
  readonly seams: SharedArrayBuffer | undefined;
}

/** The first one says that it is ready. */
export interface ThreadMessage {
  /** Of ours, in one connection. */
  readonly fault?: unknown;
  /** The thread ends, for this. */
  readonly why?: string;
}

/** A client of REALITY whose descriptor, at that index, is the main thread's; and so is that of dest, where it is there. */
export interface LeftClient {
  readonly index: number;
  /** Behind a handshake that was done: `ShownRecords`. Null: it is to be connected with dest. */
  readonly records: Uint8Array | null;
  /** Still to be said to each. */
  readonly toClient: Uint8Array;
  readonly toDest: Uint8Array;
  /** For the log. */
  readonly why: string;
}

/** What the worker returns of the wire at an index. */
export interface ReturnedRemainder {
  readonly index: number;
  readonly remainder: WireRemainder;
}
