/**
 * A token bucket shared by all sessions of a limit; what it reckons with is in rate.ts. A stream reserves: its piece is
 * paid at once, the bucket may go into debt, and the answer is how long the debt takes. Each stream holds one piece at
 * most, so those that wait are served in turn; pieces shrink with their number, so a turn is short and the shares are
 * equal.
 */
import { fullAt, grantsNow, holdMsOf, paidUntil, rateOf, type Rate } from "./rate.ts";

const MIN_PIECE_BYTES = 1500;
/** How long all who wait take for a turn: short, so that late timers bring no two turns together. */
const TURN_MS = 20;
/** Pieces of flows in company: no read is much smaller, so a turn costs everybody the same. */
const SHARED_PIECE_BYTES = 16 * 1024;
/** Who took something within this time, or the time before, counts as a flow. */
const EPOCH_MS = 100;
/** How far back a datagram's share may be saved up. */
const SAVED_MS = 40;
/** Datagrams cannot wait in turn behind streams; they may pass ahead of their turn up to this debt. */
const MOST_DEBT_MS = 100;

/** A session's place at a bucket. */
export class Slot {
  readonly bucket: TokenBucket;
  /** Null: counts always. Else only while this says so (the overage regime). */
  readonly regime: { readonly overQuota: boolean } | null;
  epoch = -1;
  /** When the flow's own share is free again. */
  shareAtMs = 0;

  constructor(bucket: TokenBucket, regime: { readonly overQuota: boolean } | null) {
    this.bucket = bucket;
    this.regime = regime;
  }

  get applies(): boolean {
    return this.regime === null || this.regime.overQuota;
  }
}

export class TokenBucket {
  readonly rate: Rate;
  #untilMs: number;
  /** In the bucket after the last piece. */
  #leftBytes = 0;
  #epoch = 0;
  #flowsNow = 0;
  #flowsBefore = 0;

  constructor(bitsPerSecond: number, nowMs: number) {
    this.rate = rateOf(bitsPerSecond);
    this.#untilMs = fullAt(this.rate, nowMs);
  }

  /**
   * What a flow may take at once at present, in bytes. A bucket that has something left does not cut: nobody waits for
   * it, and flows that another bucket has kept waiting catch up.
   */
  get pieceBytes(): number {
    const flows = this.#flows;
    const turnBytes = this.rate.bytesPerMs * TURN_MS;
    const shared = flows <= 1 ? turnBytes : Math.min(SHARED_PIECE_BYTES, turnBytes / flows);
    return Math.ceil(Math.max(MIN_PIECE_BYTES, shared, this.#leftBytes));
  }

  /** Pays for a piece; answers for how many ms it has to wait. */
  take(slot: Slot, bytes: number, nowMs: number): number {
    this.#see(slot, nowMs);
    this.#untilMs = paidUntil(this.rate, this.#untilMs, nowMs, bytes);
    this.#leftBytes = (nowMs - this.#untilMs) * this.rate.bytesPerMs;
    return holdMsOf(this.#untilMs, nowMs);
  }

  /** Could a datagram pass now? Takes nothing. */
  grants(slot: Slot, bytes: number, nowMs: number): boolean {
    this.#see(slot, nowMs);
    if (grantsNow(this.rate, this.#untilMs, nowMs, bytes)) return true;
    return this.#flows > 1 && slot.shareAtMs <= nowMs && this.#untilMs - nowMs < MOST_DEBT_MS;
  }

  /** Pays for a datagram that every bucket has granted. */
  spend(slot: Slot, bytes: number, nowMs: number): void {
    const shareMs = (bytes * Math.max(1, this.#flows)) / this.rate.bytesPerMs;
    this.#untilMs = paidUntil(this.rate, this.#untilMs, nowMs, bytes);
    slot.shareAtMs = Math.max(slot.shareAtMs, nowMs - SAVED_MS) + shareMs;
  }

  /** For a piece that was paid for and never went out. */
  giveBack(bytes: number, nowMs: number): void {
    this.#untilMs = paidUntil(this.rate, this.#untilMs, nowMs, -bytes);
  }

  get #flows(): number {
    return Math.max(this.#flowsNow, this.#flowsBefore);
  }

  #see(slot: Slot, nowMs: number): void {
    const epoch = Math.floor(nowMs / EPOCH_MS);
    if (epoch !== this.#epoch) {
      this.#flowsBefore = epoch === this.#epoch + 1 ? this.#flowsNow : 0;
      this.#flowsNow = 0;
      this.#epoch = epoch;
    }
    if (slot.epoch === epoch) return;
    slot.epoch = epoch;
    this.#flowsNow++;
  }
}
