/**
 * THE token bucket, shared by all sessions of a policy. A stream reserves: its piece is paid at once, the bucket may go
 * into debt, and the answer is how long the debt takes. Each stream holds one piece at most, so those that wait are
 * served in turn; pieces shrink with their number, so a turn is short and the shares are equal.
 */

const BURST_MS = 40;
const MIN_BURST_BYTES = 1500;
const MAX_BURST_BYTES = 4 * 1024 * 1024;
/** Pieces of flows in company: no read is much smaller, so a turn costs everybody the same. */
const SHARED_PIECE_BYTES = 16 * 1024;
/** Timers are no finer; a debt below it stands and is paid with the next piece. */
const SHORTEST_HOLD_MS = 1;
/** Who took something within this time, or the time before, counts as a flow. */
const EPOCH_MS = 100;
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
  readonly bytesPerMs: number;
  readonly burstBytes: number;
  #tokens: number;
  #atMs: number;
  #epoch = 0;
  #flowsNow = 0;
  #flowsBefore = 0;

  constructor(bitsPerSecond: number, nowMs: number) {
    const bytesPerSecond = Math.max(1, Math.floor(bitsPerSecond / 8));
    this.bytesPerMs = bytesPerSecond / 1000;
    this.burstBytes = Math.min(MAX_BURST_BYTES, Math.max(MIN_BURST_BYTES, this.bytesPerMs * BURST_MS));
    this.#tokens = this.burstBytes;
    this.#atMs = nowMs;
  }

  /** What one turn may carry at present, in bytes. */
  get pieceBytes(): number {
    const flows = Math.max(this.#flowsNow, this.#flowsBefore);
    if (flows <= 1) return Math.ceil(this.burstBytes);
    return Math.max(MIN_BURST_BYTES, Math.min(SHARED_PIECE_BYTES, Math.ceil(this.burstBytes / flows)));
  }

  /** Pays for a piece; answers for how many ms it has to wait. */
  take(slot: Slot, bytes: number, nowMs: number): number {
    this.#refill(nowMs);
    this.#see(slot);
    this.#tokens -= bytes;
    const waitMs = -this.#tokens / this.bytesPerMs;
    return waitMs < SHORTEST_HOLD_MS ? 0 : waitMs;
  }

  /** Could a datagram pass now? Takes nothing. A full bucket lets one larger than itself pass and goes into debt. */
  grants(slot: Slot, bytes: number, nowMs: number): boolean {
    this.#refill(nowMs);
    this.#see(slot);
    if (this.#tokens >= Math.min(bytes, this.burstBytes)) return true;
    const flows = Math.max(this.#flowsNow, this.#flowsBefore);
    return flows > 1 && slot.shareAtMs <= nowMs && -this.#tokens < this.bytesPerMs * MOST_DEBT_MS;
  }

  /** Pays for a datagram that every bucket has granted. */
  spend(slot: Slot, bytes: number, nowMs: number): void {
    const flows = Math.max(1, this.#flowsNow, this.#flowsBefore);
    this.#tokens -= bytes;
    slot.shareAtMs = Math.max(slot.shareAtMs, nowMs - BURST_MS) + (bytes * flows) / this.bytesPerMs;
  }

  /** For a piece that was paid for and never went out. */
  giveBack(bytes: number): void {
    this.#tokens += bytes; // the next refill cuts what is above the burst
  }

  #refill(nowMs: number): void {
    if (nowMs > this.#atMs) {
      const filled = this.#tokens + (nowMs - this.#atMs) * this.bytesPerMs;
      this.#tokens = Math.min(this.burstBytes, filled);
      this.#atMs = nowMs;
    }
    const epoch = Math.floor(nowMs / EPOCH_MS);
    if (epoch === this.#epoch) return;
    this.#flowsBefore = epoch === this.#epoch + 1 ? this.#flowsNow : 0;
    this.#flowsNow = 0;
    this.#epoch = epoch;
  }

  #see(slot: Slot): void {
    if (slot.epoch === this.#epoch) return;
    slot.epoch = this.#epoch;
    this.#flowsNow++;
  }
}
