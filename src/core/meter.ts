import type { Decision } from "./router.ts";
import type { Metadata } from "./session.ts";

export type Direction = "upload" | "download";

/** The piece that reaches a quota may go so far beyond it. */
export const LAST_PIECE_BYTES = 64 * 1024;

/** Moves bytes by a meter, and is called when the meter changes. */
export interface MeterObserver {
  /** `free` may have changed. */
  onMeterChange(): void;
}

/** All that the relay knows of governance. A new policy book is picked up inside; the relay does not notice. */
export interface Meter extends Disposable {
  /** What may be handed on in one piece at today's limits, in bytes; larger reads are cut. */
  readonly pieceBytes: number;
  /**
   * Counts a piece about to be handed on; answers for how many ms to hold it (0: none). Each direction holds one piece
   * at most. Synchronous, allocates nothing.
   */
  reserve(direction: Direction, bytes: number): number;
  /**
   * May the piece that was reserved, and held for its time, go out now? 0: it is under way, until `sent` says that it
   * is out. Otherwise it is held for so many ms more and asked for again. What is held when the meter is disposed of was
   * not sent.
   */
  trySend(direction: Direction, bytes: number): number;
  /** What has passed is out, or never will be: soon, for all others of a limit reckon with it. Nothing happens where nothing is. */
  sent?(direction: Direction): void;
  /** What is held of the direction will never go out; nothing happens where nothing is. */
  cancel?(direction: Direction): void;
  /**
   * Corrects the count: of bytes that moved unreserved while the meter was free, or, negative, of those that were reserved
   * and granted, and were not sent. Holds nothing.
   */
  adjust(direction: Direction, bytes: number): void;
  /** A datagram: counted and paid for only if every bucket grants it now; false: drop it. */
  admit(direction: Direction, bytes: number): boolean;
  /** True: no limit and no quota applies at present, so sums may be charged after they have moved. */
  readonly free?: boolean;
  /** `observer` is called from now on, in place of the one before; null: none is. A meter without it never changes. */
  observe?(observer: MeterObserver | null): void;
  /**
   * Where a new plain-HTTP connection is redirected instead of being served; null or absent: it is served. Read once.
   */
  readonly redirect?: string | null;
}

/** Opens a meter for every session that reached its destination. Never throws; a failed dial is no session. */
export interface Ledger {
  /** True: a meter of a session that no managed user makes would be `free` now, and redirect nowhere. */
  readonly free?: boolean;
  open(metadata: Metadata, decision: Decision): Meter;
}
