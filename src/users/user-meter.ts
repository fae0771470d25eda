/**
 * The meter of a managed user's session: counts for the user, and applies the user's limits besides those of the
 * policies.
 */
import { LAST_PIECE_BYTES, type Direction, type Ledger, type Meter } from "#core/meter.ts";
import type { Metadata } from "#core/session.ts";
import { holdMsOf } from "#lib/rate.ts";
import { Slot, type TokenBucket } from "#lib/token-bucket.ts";
import type { UserCounter } from "./counters.ts";
import type { Origin } from "./presence.ts";

export interface MeterEnv {
  /** The user's present counter; null: there is none. A reset makes a new one, and a listener may stop being managed. */
  readonly counterOf: (listener: string, user: string) => UserCounter | null;
  /** Where the session comes from. */
  readonly originOf: (metadata: Metadata) => Origin | null;
  /** Unix time. */
  readonly nowMs: () => number;
  /** Never goes back. */
  readonly monotonicMs: () => number;
}

/** The user is taken from the listener long before this, unless the medium takes nothing for now. */
const OVER_HOLD_MS = 5_000;
/** More of a fleet's quota has been asked for, and comes within some milliseconds where all is well. */
const WAIT_HOLD_MS = 50;

/** The same ledger, with the sessions of managed users metered for their users, too. */
export function meterUsers(inner: Ledger, env: MeterEnv): Ledger {
  return {
    get free() {
      return inner.free === true;
    },
    open(metadata, decision) {
      const meter = inner.open(metadata, decision);
      const { name, userId } = metadata.inbound;
      return userId === undefined || env.counterOf(name, userId) === null
        ? meter
        : new UserMeter(meter, env, metadata, userId);
    },
  };
}

/** One direction: the place at the bucket in force, and the piece that it holds back. */
class MeterQueue {
  slot: Slot | null = null;
  delayedFor: UserCounter | null = null;
  delayedBytes = 0;
  /** 0: nothing is held. */
  delayedUntilMs = 0;
  /** The quota was used up before this piece. */
  isBeyond = false;
  /** The inner meter holds the same piece. */
  innerHolds = false;

  hold(counter: UserCounter | null, bytes: number, untilMs: number): void {
    this.delayedFor = counter;
    this.delayedBytes = bytes;
    this.delayedUntilMs = untilMs;
  }

  /** Takes the bucket in force. */
  turnTo(bucket: TokenBucket | null, nowMs: number): Slot | null {
    if (bucket === (this.slot?.bucket ?? null)) return this.slot;
    this.sent(nowMs); // the bucket that is left behind gets no further report
    return (this.slot = bucket === null ? null : new Slot(bucket, null));
  }

  sent(nowMs: number): void {
    this.slot?.bucket.sent(this.slot, nowMs);
  }
}

class UserMeter implements Meter {
  readonly #inner: Meter;
  readonly #env: MeterEnv;
  readonly #listener: string;
  readonly #user: string;
  readonly #origin: Origin | null;
  readonly #queues = { upload: new MeterQueue(), download: new MeterQueue() };

  constructor(inner: Meter, env: MeterEnv, metadata: Metadata, user: string) {
    this.#inner = inner;
    this.#env = env;
    this.#listener = metadata.inbound.name;
    this.#user = user;
    this.#origin = env.originOf(metadata);
  }

  get redirect(): string | null {
    return this.#inner.redirect ?? null;
  }

  get pieceBytes(): number {
    const inner = this.#inner.pieceBytes;
    const counter = this.#counter;
    const allowance = counter?.allowance ?? null;
    if (counter === null || allowance === null) return inner;
    return Math.min(
      inner,
      allowance.upload?.pieceBytes ?? inner,
      allowance.download?.pieceBytes ?? inner,
      Math.max(LAST_PIECE_BYTES, counter.leftBytes(this.#env.nowMs())),
    );
  }

  reserve(direction: Direction, bytes: number): number {
    const counter = this.#counter;
    const innerMs = this.#inner.reserve(direction, bytes);
    if (counter === null) return innerMs;
    const nowMs = this.#seen();
    let holdMs = innerMs;
    const queue = this.#queues[direction];
    queue.isBeyond = counter.isOver;
    if (queue.isBeyond) holdMs = Math.max(holdMs, OVER_HOLD_MS);
    else if (counter.share?.isWaiting === true) holdMs = Math.max(holdMs, WAIT_HOLD_MS);
    counter.count(direction, bytes, this.#env.nowMs());
    const slot = queue.turnTo(counter.allowance?.[direction] ?? null, nowMs);
    if (slot !== null) holdMs = Math.max(holdMs, slot.bucket.take(slot, bytes, nowMs));
    queue.innerHolds = innerMs > 0;
    if (holdMs > 0) queue.hold(counter, bytes, nowMs + holdMs);
    return holdMs;
  }

  trySend(direction: Direction, bytes: number): number {
    const counter = this.#counter;
    const queue = this.#queues[direction];
    const nowMs = this.#env.monotonicMs();
    let holdMs = queue.delayedUntilMs === 0 ? 0 : holdMsOf(queue.delayedUntilMs, nowMs);
    if (holdMs > 0) return holdMs; // a timer that came early
    if (queue.isBeyond && counter?.isOver === true) {
      queue.delayedUntilMs = nowMs + OVER_HOLD_MS;
      return OVER_HOLD_MS;
    }
    const slot = queue.turnTo(counter?.allowance?.[direction] ?? null, nowMs);
    holdMs = slot?.bucket.closedMs(slot, bytes, nowMs) ?? 0;
    if (holdMs === 0) {
      holdMs = this.#inner.trySend(direction, bytes);
      queue.innerHolds = holdMs > 0;
    }
    if (holdMs === 0) {
      slot?.bucket.pass(slot, bytes, nowMs);
      queue.delayedUntilMs = 0;
    } else if (queue.delayedUntilMs === 0) queue.hold(counter, bytes, nowMs + holdMs);
    else queue.delayedUntilMs = nowMs + holdMs;
    return holdMs;
  }

  sent(direction: Direction): void {
    const queue = this.#queues[direction];
    if (queue.slot !== null) queue.sent(this.#env.monotonicMs());
    this.#inner.sent?.(direction);
  }

  adjust(direction: Direction, bytes: number): void {
    this.#inner.adjust(direction, bytes);
    if (bytes < 0) this.#queues[direction].slot?.bucket.giveBack(-bytes, this.#env.monotonicMs());
    this.#counter?.count(direction, bytes, this.#env.nowMs());
  }

  admit(direction: Direction, bytes: number): boolean {
    const counter = this.#counter;
    if (counter === null) return this.#inner.admit(direction, bytes);
    const nowMs = this.#seen();
    if (counter.isOver || counter.share?.isWaiting === true) return false;
    const slot = this.#queues[direction].turnTo(counter.allowance?.[direction] ?? null, nowMs);
    if (slot !== null && !slot.bucket.grants(slot, bytes, nowMs)) return false;
    if (!this.#inner.admit(direction, bytes)) return false;
    slot?.bucket.spend(slot, bytes, nowMs);
    counter.count(direction, bytes, this.#env.nowMs());
    return true;
  }

  [Symbol.dispose](): void {
    this.cancel("upload");
    this.cancel("download");
    this.#inner[Symbol.dispose]();
  }

  cancel(direction: Direction): void {
    const queue = this.#queues[direction];
    if (queue.delayedUntilMs === 0) return;
    queue.delayedUntilMs = 0;
    queue.slot?.bucket.cancel(queue.slot, queue.delayedBytes, this.#env.monotonicMs());
    if (queue.innerHolds) this.#inner.cancel?.(direction);
    else this.#inner.adjust(direction, -queue.delayedBytes);
    if (queue.delayedFor === this.#counter)
      queue.delayedFor?.count(direction, -queue.delayedBytes, this.#env.nowMs());
  }

  get #counter(): UserCounter | null {
    return this.#env.counterOf(this.#listener, this.#user);
  }

  #seen(): number {
    const nowMs = this.#env.monotonicMs();
    if (this.#origin !== null) this.#origin.seenAtMs = nowMs;
    return nowMs;
  }
}
