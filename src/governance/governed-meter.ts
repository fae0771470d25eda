import { LAST_PIECE_BYTES, type Direction, type Meter, type MeterObserver } from "#core/meter.ts";
import type { Decision } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";
import type { PolicySet } from "./account.ts";
import { holdMsOf } from "#lib/rate.ts";
import type { Slot } from "#lib/token-bucket.ts";
import type { GovernanceClock } from "./clock.ts";
import type { PolicyState } from "./policy-state.ts";

/** Where a meter counts. */
export interface MeterOwner {
  readonly clock: Pick<GovernanceClock, "monotonicMs">;
  /** A link to the portal that names these policies; null: there is no portal. */
  portalLink(ids: readonly string[]): string | null;
  /** Before a transfer: has time freed the quota of a policy that was over? */
  refresh(account: PolicySet): void;
  /** Counts; `bytes` is negative for a piece that never went out. */
  record(account: PolicySet, direction: Direction, bytes: number): void;
  close(meter: GovernedMeter): void;
}

const NO_QUOTAS: readonly PolicyState[] = [];
const NO_SLOTS: readonly Slot[] = [];

/** A piece that was paid for and counted and has not passed yet. */
interface DelayedBytes {
  /** Null: none. */
  account: PolicySet | null;
  slots: readonly Slot[];
  bytes: number;
  untilMs: number;
}

const noneDelayed = (): DelayedBytes => ({ account: null, slots: NO_SLOTS, bytes: 0, untilMs: 0 });

/** One session's meter. Bound to an account; a change of the policies binds it anew, whatever it matched before. */
export class GovernedMeter implements Meter {
  readonly metadata: Metadata;
  readonly decision: Decision;
  readonly #ledger: MeterOwner;
  #account: PolicySet | null = null;
  #upload = NO_SLOTS;
  #download = NO_SLOTS;
  /** Made with the first piece that has to wait; most sessions have none. */
  #delayedUpload: DelayedBytes | null = null;
  #delayedDownload: DelayedBytes | null = null;
  #observer: MeterObserver | null = null;
  #closed = false;

  constructor(ledger: MeterOwner, metadata: Metadata, decision: Decision) {
    this.#ledger = ledger;
    this.metadata = metadata;
    this.decision = decision;
  }

  observe(observer: MeterObserver | null): void {
    this.#observer = observer;
  }

  /** Null: no policy applies. */
  get account(): PolicySet | null {
    return this.#account;
  }

  bind(account: PolicySet | null): void {
    this.sent("upload"); // the buckets of the former policies will not be told otherwise
    this.sent("download");
    this.#account = account;
    this.#upload = account?.slots("upload") ?? NO_SLOTS;
    this.#download = account?.slots("download") ?? NO_SLOTS;
    this.#observer?.onMeterChange();
  }

  get pieceBytes(): number {
    const quotas = this.#account?.quotas ?? NO_QUOTAS;
    let least = Math.min(pieceOf(this.#upload), pieceOf(this.#download));
    for (let at = 0; at < quotas.length; at++)
      least = Math.min(least, Math.max(LAST_PIECE_BYTES, stateAt(quotas, at).leftBytes));
    return least;
  }

  get free(): boolean {
    return (
      this.#upload.length === 0 && this.#download.length === 0 && (this.#account?.quotas.length ?? 0) === 0
    );
  }

  get redirect(): string | null {
    const over = this.#account?.forces.filter(({ policy, state }) => policy.portal && state.overQuota) ?? [];
    return over.length === 0 ? null : this.#ledger.portalLink(over.map(({ policy }) => policy.id));
  }

  reserve(direction: Direction, bytes: number): number {
    const account = this.#account;
    if (account === null) return 0;
    const slots = direction === "upload" ? this.#upload : this.#download;
    this.#ledger.refresh(account);
    let holdMs = 0;
    if (slots.length > 0) {
      const nowMs = this.#ledger.clock.monotonicMs();
      for (let at = 0; at < slots.length; at++) {
        const slot = slotAt(slots, at);
        if (slot.applies) holdMs = Math.max(holdMs, slot.bucket.take(slot, bytes, nowMs));
      }
      if (holdMs > 0) this.#hold(direction, bytes, nowMs + holdMs);
    }
    this.#ledger.record(account, direction, bytes);
    return holdMs;
  }

  trySend(direction: Direction, bytes: number): number {
    const slots = direction === "upload" ? this.#upload : this.#download;
    const delayed = direction === "upload" ? this.#delayedUpload : this.#delayedDownload;
    const holds = delayed !== null && delayed.account !== null;
    if (slots.length === 0 && !holds) return 0;
    const nowMs = this.#ledger.clock.monotonicMs();
    let holdMs = holds ? holdMsOf(delayed.untilMs, nowMs) : 0;
    if (holdMs > 0) return holdMs; // a timer that came early
    for (let at = 0; at < slots.length; at++) {
      const slot = slotAt(slots, at);
      holdMs = Math.max(holdMs, slot.bucket.closedMs(slot, bytes, nowMs));
    }
    if (holdMs > 0) {
      if (holds) delayed.untilMs = nowMs + holdMs;
      else this.#hold(direction, bytes, nowMs + holdMs);
      return holdMs;
    }
    for (let at = 0; at < slots.length; at++) {
      const slot = slotAt(slots, at);
      slot.bucket.pass(slot, bytes, nowMs);
    }
    if (holds) delayed.account = null;
    return 0;
  }

  sent(direction: Direction): void {
    const slots = direction === "upload" ? this.#upload : this.#download;
    if (slots.length === 0) return;
    const nowMs = this.#ledger.clock.monotonicMs();
    for (let at = 0; at < slots.length; at++) {
      const slot = slotAt(slots, at);
      slot.bucket.sent(slot, nowMs);
    }
  }

  adjust(direction: Direction, bytes: number): void {
    const account = this.#account;
    if (account === null) return;
    if (bytes < 0) this.#giveBack(direction === "upload" ? this.#upload : this.#download, -bytes);
    this.#ledger.record(account, direction, bytes);
  }

  admit(direction: Direction, bytes: number): boolean {
    const account = this.#account;
    if (account === null) return true;
    const slots = direction === "upload" ? this.#upload : this.#download;
    this.#ledger.refresh(account);
    if (slots.length > 0) {
      const nowMs = this.#ledger.clock.monotonicMs();
      for (let at = 0; at < slots.length; at++) {
        const slot = slotAt(slots, at);
        if (slot.applies && !slot.bucket.grants(slot, bytes, nowMs)) return false;
      }
      for (let at = 0; at < slots.length; at++) {
        const slot = slotAt(slots, at);
        if (slot.applies) slot.bucket.spend(slot, bytes, nowMs);
      }
    }
    this.#ledger.record(account, direction, bytes);
    return true;
  }

  #hold(direction: Direction, bytes: number, untilMs: number): void {
    const isUpload = direction === "upload";
    const delayed = isUpload
      ? (this.#delayedUpload ??= noneDelayed())
      : (this.#delayedDownload ??= noneDelayed());
    delayed.account = this.#account;
    delayed.slots = isUpload ? this.#upload : this.#download;
    delayed.bytes = bytes;
    delayed.untilMs = untilMs;
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.cancel("upload");
    this.cancel("download");
    this.#ledger.close(this);
  }

  #giveBack(slots: readonly Slot[], bytes: number): void {
    const nowMs = this.#ledger.clock.monotonicMs();
    for (const { bucket, applies } of slots) if (applies) bucket.giveBack(bytes, nowMs);
  }

  cancel(direction: Direction): void {
    const delayed = direction === "upload" ? this.#delayedUpload : this.#delayedDownload;
    if (delayed === null || delayed.account === null) return;
    const { account, slots, bytes } = delayed;
    delayed.account = null;
    const nowMs = this.#ledger.clock.monotonicMs();
    for (const slot of slots) slot.bucket.cancel(slot, bytes, nowMs);
    this.#ledger.record(account, direction, -bytes);
  }
}

/** With reads of their own, because they run for every chunk; see `lib/at.ts`. */
function slotAt(slots: readonly Slot[], at: number): Slot {
  return slots[at] as Slot;
}

function stateAt(states: readonly PolicyState[], at: number): PolicyState {
  return states[at] as PolicyState;
}

function pieceOf(slots: readonly Slot[]): number {
  let least = Number.MAX_SAFE_INTEGER;
  for (let at = 0; at < slots.length; at++) {
    const slot = slotAt(slots, at);
    if (slot.applies) least = Math.min(least, slot.bucket.pieceBytes);
  }
  return least;
}
