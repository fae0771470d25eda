/**
 * A token bucket shared by all sessions of a limit; what it reckons with is in rate.ts. It is two things in a row.
 *
 * The line holds the mean: a stream reserves, its piece is paid at once, the bucket may go into debt, and the answer is
 * how long the debt takes. Each stream holds one piece at most, so those that wait are served in turn; pieces shrink with
 * their number, so a turn is short and the shares are equal. As long as the bucket is in use the line remembers what late
 * timers and busy processors have kept back, and makes up for it.
 *
 * The gate holds the peak: it is asked when a piece really goes out, however early or late that is, and lets no 100 ms
 * have more than 1.5 times the rate.
 */
import { fullAt, gateOf, grantsNow, holdMsOf, paidUntil, rateOf, shortMsOf, type Rate } from "./rate.ts";

const MIN_PIECE_BYTES = 1500;
/** How long all that wait take for a turn: short, so that late timers bring no two turns together. */
const TURN_MS = 20;
/**
 * The piece of a flow that is alone, in parts of the burst. After a late timer the gate is full, and lets whole pieces
 * through: what is left over of the burst is lost, so pieces are small, and many fit it.
 */
const LONE_PART = 1 / 10;
const LONE_MIN_BYTES = 500;
/** The largest piece of a flow that has been kept waiting, in parts of the burst. */
const MOST_PART = 1 / 3;
/** The largest burst of a rate is over sooner where the rate is far above what flows use: they share no small pieces. */
const WIDE_MS = 10;
/**
 * Size of a piece while several flows share the bucket: hardly any read is smaller, so every turn costs all flows the
 * same.
 */
const SHARED_PIECE_BYTES = 16 * 1024;
/** What took tokens within this time, or the time before, counts as a flow. */
const EPOCH_MS = 100;
/** How far back a flow's share may be saved up while others keep the bucket busy. */
const SAVED_MS = 40;
/**
 * A flow that has had less than its share (another limit delayed it, its reads are small, a datagram cannot queue) may
 * pass ahead of the queue up to this debt. Above it there are more flows than were counted, and only the queue decides.
 */
const MOST_DEBT_MS = 100;
/** A bucket that no bytes passed for this time is idle, and remembers only its burst. */
const REST_MS = 100;
/** What a bucket in use remembers: 2.5 % of ten seconds, and nothing of it from a transfer's first byte on. */
const MEMORY_MS = 250;

/** A session's place at a bucket. */
export class Slot {
  readonly bucket: TokenBucket;
  /** Null: counts always. Else only while this says so (the overage regime). */
  readonly regime: { readonly overQuota: boolean } | null;
  epoch = -1;
  /** Until when the flow has had its share of the bucket. */
  shareUntilMs = 0;
  /** Its piece has been paid for and has not passed the gate: of a bucket that came into force later it knows nothing. */
  charged = false;
  /** When the gate expects the piece that it has sent away. */
  expectedMs = Infinity;
  /** Have passed, and go out at some time up to `sent`. */
  underWayBytes = 0;

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
  readonly #gate: Rate;
  #untilMs: number;
  #gateUntilMs: number;
  /** The same once all pieces have passed that were sent away with a time to come back at. */
  #expectedUntilMs: number;
  #passedAtMs = -Infinity;
  /** Of all slots: let through the gate, which pays for them when they are out. */
  #underWayBytes = 0;
  /** In the bucket after the last piece, at the line and at the gate. */
  #leftBytes = 0;
  /**
   * When the bucket was last without debt: no flow has missed a share before that, least of all while the program was
   * suspended.
   */
  #freeAtMs: number;
  #epoch = 0;
  #flowsNow = 0;
  #flowsBefore = 0;

  constructor(bitsPerSecond: number, nowMs: number) {
    this.rate = rateOf(bitsPerSecond);
    this.#gate = gateOf(this.rate);
    this.#untilMs = fullAt(this.rate, nowMs);
    this.#gateUntilMs = this.#expectedUntilMs = fullAt(this.#gate, nowMs);
    this.#freeAtMs = nowMs;
  }

  /**
   * The bytes that a flow may take at once at present. A bucket with tokens left does not limit the piece: no flow
   * waits for it, and flows that were delayed by another bucket catch up.
   */
  get pieceBytes(): number {
    const flows = Math.max(1, this.#flows);
    const { bytesPerMs, burstBytes } = this.rate;
    const shared =
      flows === 1 ? burstBytes * LONE_PART : Math.min(SHARED_PIECE_BYTES, (bytesPerMs * TURN_MS) / flows);
    const least = flows === 1 ? LONE_MIN_BYTES : MIN_PIECE_BYTES;
    const saved =
      this.rate.burstMs < WIDE_MS
        ? Math.min(burstBytes / 2, this.#leftBytes)
        : Math.min(burstBytes * MOST_PART, this.#leftBytes / flows);
    return Math.ceil(Math.max(least, shared, saved));
  }

  /** Pays for a piece; answers for how many ms it has to wait before it may ask at the gate. */
  take(slot: Slot, bytes: number, nowMs: number): number {
    this.#see(slot, nowMs);
    this.#pay(slot, bytes, nowMs);
    slot.charged = true;
    const inLine = this.#untilMs;
    if (this.#flows <= 1 || inLine - nowMs >= MOST_DEBT_MS) return holdMsOf(inLine, nowMs);
    return holdMsOf(Math.min(inLine, slot.shareUntilMs), nowMs);
  }

  /**
   * For how many ms a piece that has been paid for must still wait. 0: it may pass now. Otherwise its position in the
   * queue is kept until then.
   */
  closedMs(slot: Slot, bytes: number, nowMs: number): number {
    if (!slot.charged) return 0;
    const isTurn = this.#expectedUntilMs <= nowMs || slot.expectedMs - nowMs < 1;
    const gateUntilMs = this.#gateWithAll(nowMs);
    if (isTurn && shortMsOf(this.#gate, gateUntilMs, nowMs, bytes) === 0) return 0;
    if (slot.expectedMs > nowMs && slot.expectedMs !== Infinity) return slot.expectedMs - nowMs;
    const size = Math.min(bytes, this.#gate.burstBytes);
    const behindMs = Math.max(this.#expectedUntilMs, gateUntilMs);
    slot.expectedMs = this.#expectedUntilMs = paidUntil(this.#gate, behindMs, nowMs, size);
    return Math.max(1, slot.expectedMs - nowMs);
  }

  /** A piece goes out, now that every gate is open to it, at some time up to `sent`. */
  pass(slot: Slot, bytes: number, nowMs: number): void {
    if (!slot.charged) return;
    slot.charged = false;
    slot.expectedMs = Infinity;
    slot.underWayBytes += bytes;
    this.#underWayBytes += bytes;
    this.#leftBytes = (nowMs - Math.max(this.#untilMs, this.#gateWithAll(nowMs))) * this.rate.bytesPerMs;
    this.#passedAtMs = nowMs;
  }

  /** What was under way is out. When is not known: the gate takes it for now, which is never too early. */
  sent(slot: Slot, nowMs: number): void {
    if (slot.underWayBytes === 0) return;
    this.#gateUntilMs = paidUntil(this.#gate, this.#gateUntilMs, nowMs, slot.underWayBytes);
    this.#underWayBytes -= slot.underWayBytes;
    slot.underWayBytes = 0;
  }

  /** The gate as if all that is under way went out now: it may. */
  #gateWithAll(nowMs: number): number {
    if (this.#underWayBytes === 0) return this.#gateUntilMs;
    return paidUntil(this.#gate, this.#gateUntilMs, nowMs, this.#underWayBytes);
  }

  /** Could a datagram pass now? Takes nothing. */
  grants(slot: Slot, bytes: number, nowMs: number): boolean {
    this.#see(slot, nowMs);
    if (!grantsNow(this.#gate, this.#gateWithAll(nowMs), nowMs, bytes)) return false;
    if (grantsNow(this.rate, this.#untilMs, nowMs, bytes)) return true;
    return this.#flows > 1 && slot.shareUntilMs <= nowMs && this.#untilMs - nowMs < MOST_DEBT_MS;
  }

  /** Pays for a datagram that every bucket has granted. */
  spend(slot: Slot, bytes: number, nowMs: number): void {
    this.#pay(slot, bytes, nowMs);
    slot.charged = true;
    this.pass(slot, bytes, nowMs);
    this.sent(slot, nowMs);
  }

  #pay(slot: Slot, bytes: number, nowMs: number): void {
    const { rate } = this;
    if (this.#untilMs <= nowMs) this.#freeAtMs = nowMs;
    const memoryMs = nowMs - this.#passedAtMs < REST_MS ? Math.max(MEMORY_MS, rate.burstMs) : rate.burstMs;
    this.#untilMs = paidUntil(rate, this.#untilMs, nowMs, bytes, memoryMs);
    const from = Math.max(slot.shareUntilMs, nowMs - SAVED_MS, this.#freeAtMs);
    const until = from + (bytes * Math.max(1, this.#flows)) / rate.bytesPerMs;
    slot.shareUntilMs = Math.min(until, Math.max(this.#untilMs, nowMs));
  }

  /** For a piece that was to pass and will not: its flow has ended. */
  cancel(slot: Slot, bytes: number, nowMs: number): void {
    if (!slot.charged) return;
    if (slot.expectedMs !== Infinity) this.#expectedUntilMs -= bytes / this.#gate.bytesPerMs;
    slot.expectedMs = Infinity;
    slot.charged = false;
    this.giveBack(bytes, nowMs);
  }

  /** For bytes that were paid for, have passed and never went out. */
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
    if (slot.epoch < 0) slot.shareUntilMs = nowMs; // a new flow has missed nothing
    slot.epoch = epoch;
    this.#flowsNow++;
  }
}
