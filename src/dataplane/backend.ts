/** The seam for engines that move bytes between two kernel sockets past JavaScript's streams. */
import type { Duplex } from "node:stream";
import type { Detachable } from "#core/handover.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import type { Direction, Meter } from "#core/meter.ts";
import type { AcceptOffload } from "#net/listen/accept-offload.ts";
import type { IdleTimers } from "./idle-timers.ts";

/** How long conversations may rest, and who sees to it. */
export interface RelayTimeouts {
  readonly timers: IdleTimers;
  /** Silence in both directions after which the conversation is closed. */
  readonly idleMs: number;
  /** The same once one direction has ended. */
  readonly halfClosedIdleMs: number;
}

/** What every way of carrying a conversation must keep to. */
export interface RelayBackendOptions extends RelayTimeouts {
  /** Aborted: both sides are ended as a fault would end them. */
  readonly signal: AbortSignal;
  /** Payload that was really handed on; an engine may report it in sums, at least once a second. */
  readonly onBytes: (direction: Direction, bytes: number) => void;
}

/** Who keeps the books of a conversation that an engine moves. */
export interface RelayOwner {
  /** As `CarryOptions.onBytes`. */
  onBytes(direction: Direction, bytes: number): void;
  /** It is over. */
  onEnded(): void;
}

/** Ends as a fault would; harmless when it has ended. */
export interface Resettable {
  reset(): void;
}

/** One side of a conversation: the stream that the relay has, and what lies below it. */
export interface RelayEnd {
  readonly stream: Duplex;
  readonly detachable: Detachable;
}

export interface RelayPair {
  readonly client: RelayEnd;
  readonly remote: RelayEnd;
  /**
   * Called, in place of settling, where the carrier cannot go on and the portable pump can: the client's stream lives
   * again, and the remote side is this one from now on. Absent: what may have to come back is not carried.
   */
  readonly resume?: (remote: Duplex) => void;
}

export interface RelayBackend {
  /**
   * What a conversation must have moved before it is offered, in bytes; one that is older than a sweep is offered
   * anyhow. To hand over costs more than a short conversation by the pump. 0: it is offered before anything else.
   */
  readonly afterBytes: number;
  /**
   * Takes both sides over and settles when both are closed; never rejects. Bytes that a stream has read already
   * (`readableLength`) are delivered first, in order; its listeners stay. A plain socket of the runtime is destroyed at
   * once; any other stream stays until the end, and whoever destroys it ends the conversation. Null, with nothing
   * touched: not for me (limits that it cannot keep, no capacity), the portable pump does it.
   */
  relay(pair: RelayPair, meter: Meter, options: RelayBackendOptions): Promise<void> | null;
  /** Workers that accept; absent or null: there are none. */
  readonly accepting?: AcceptOffload | null;
  /**
   * Relays a connection that its worker has `dialled`; to be called in the same turn. What is returned ends it as a fault
   * would.
   */
  resume?(worker: WorkerConnection, meter: Meter, timeouts: RelayTimeouts, owner: RelayOwner): Resettable;
}
