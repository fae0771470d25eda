/** The seam for engines that move bytes between two kernel sockets past JavaScript's streams. */
import type { Duplex } from "node:stream";
import type { Offer } from "#core/handover.ts";
import type { HeldClient } from "#core/held.ts";
import type { Direction, Meter } from "#core/meter.ts";
import type { FrontThreads } from "#net/front-threads.ts";
import type { Sweep } from "./sweep.ts";

/** How long conversations may rest, and who sees to it. */
export interface Patience {
  readonly sweep: Sweep;
  /** Silence in both directions after which the conversation is closed. */
  readonly idleMs: number;
  /** The same once one direction has ended. */
  readonly halfClosedIdleMs: number;
}

/** What every way of carrying a conversation must keep to. */
export interface CarryOptions extends Patience {
  /** Aborted: both sides are ended as a fault would end them. */
  readonly signal: AbortSignal;
  /** Payload that was really handed on; an engine may report it in sums, at least once a second. */
  readonly onBytes: (direction: Direction, bytes: number) => void;
}

/** Who keeps the books of a conversation that an engine moves. */
export interface FlowOwner {
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
export interface End {
  readonly stream: Duplex;
  readonly offer: Offer;
}

export interface Pair {
  readonly client: End;
  readonly remote: End;
  /**
   * Called, in place of settling, where the carrier cannot go on and the portable pump can: the client's stream lives
   * again, and the remote side is this one from now on. Absent: what may have to come back is not carried.
   */
  readonly goOn?: (remote: Duplex) => void;
}

export interface Carrier {
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
  carry(pair: Pair, meter: Meter, options: CarryOptions): Promise<void> | null;
  /** Threads that accept; absent or null: there are none. */
  readonly fronts?: FrontThreads | null;
  /** Goes on with a client of those threads from where it was `dialled`, in that very turn; what it answers with ends it. */
  goOn?(held: HeldClient, meter: Meter, patience: Patience, owner: FlowOwner): Resettable;
}
