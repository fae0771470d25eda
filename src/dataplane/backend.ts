/** The seam for engines that move bytes between two kernel sockets past JavaScript's streams. */
import type { Duplex } from "node:stream";
import type { Detachable } from "#core/handover.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import type { Direction, Meter } from "#core/meter.ts";
import type { AcceptOffload } from "#net/listen/accept-offload.ts";
import type { IdleTimers } from "./idle-timers.ts";

/** Idle timeouts of connections, and the timers that apply them. */
export interface RelayTimeouts {
  readonly timers: IdleTimers;
  /** Silence in both directions after which the connection is closed. */
  readonly idleMs: number;
  /** The same once one direction has ended. */
  readonly halfClosedIdleMs: number;
}

/** What every backend must apply to a connection. */
export interface RelayBackendOptions extends RelayTimeouts {
  /** Aborted: both sides are ended as a fault would end them. */
  readonly signal: AbortSignal;
  /** Payload that was really handed on; an engine may report it in sums, at least once a second. */
  readonly onBytes: (direction: Direction, bytes: number) => void;
  /** It ends for its silence. Absent: it is not asked for. */
  readonly onSilent?: (() => void) | undefined;
}

/** Receives the byte counts and the end of a connection that a backend relays. */
export interface RelayOwner {
  /** As `CarryOptions.onBytes`. */
  onBytes(direction: Direction, bytes: number): void;
  /** Comes before `onEnded` where it ends for its silence. Absent: it is not asked for. */
  onSilent?: (() => void) | undefined;
  /** It is over. */
  onEnded(): void;
}

/** Ends as a fault would; harmless when it has ended. */
export interface Resettable {
  reset(): void;
}

/** One side of a connection: the relay's stream, and the socket below it. */
export interface RelayEnd {
  readonly stream: Duplex;
  readonly detachable: Detachable;
}

export interface RelayPair {
  readonly client: RelayEnd;
  readonly remote: RelayEnd;
  /**
   * Called, instead of settling, when the backend cannot continue and the event-loop pump can: the stream of one side is
   * usable again, and the other side is the one that is passed from now on. Absent: connections that may have to come
   * back are not relayed by the backend.
   */
  readonly resume?: (side: { readonly client: Duplex } | { readonly remote: Duplex }) => void;
}

export interface RelayBackend {
  /**
   * Bytes that a connection must have moved before it is offered; one that is older than an idle-timer period is
   * offered anyhow. A hand-over costs more than a short connection by the pump. 0: it is offered before any byte.
   */
  readonly afterBytes: number;
  /**
   * Takes ownership of both sides and settles when both are closed; never rejects. Bytes that a stream has read already
   * (`readableLength`) are delivered first, in order; its listeners stay. A plain socket of the runtime is destroyed at
   * once; any other stream stays until the end, and destroying it ends the connection. Null, with nothing touched: the
   * backend cannot relay it (limits that it does not support, no capacity), and the event-loop pump does.
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
