/** Bytes of managed users, as they are counted where they are relayed. */
import type { Direction } from "#core/meter.ts";
import { canBar, isSameQuota } from "./limits.ts";
import type { Allowance, StoredUsage } from "./allowance.ts";
import { UserHistory } from "./history.ts";
import type { QuotaShare } from "./quota-share.ts";
import { RecentUsage } from "./recent-usage.ts";

export interface Traffic {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  /** Null: there is no quota with periods. */
  readonly usage: StoredUsage | null;
  /** Absent or null: none is known, or none is kept. */
  readonly history?: UserHistory | null;
}

export const NO_TRAFFIC: Traffic = { uploadBytes: 0, downloadBytes: 0, usage: null };

/** What one user has moved since the counters were set back. */
export class UserCounter implements Traffic {
  readonly listener: string;
  readonly id: string;
  uploadBytes: number;
  downloadBytes: number;
  /** What of both is in a fleet's ledger, or was moved on other nodes; the rest was counted here since. */
  accountedUpload: number;
  accountedDownload: number;
  /** There is more than the state file has. */
  isChanged = false;
  /** The quota was used up when last looked at. */
  isOver = false;
  /** What the end of sessions has given back of a quota that was used up. It lets no one in again. */
  returnedBytes = 0;
  /** Null: the user has no limits. */
  allowance: Allowance | null;
  /** The node's part of a quota that is a fleet's; null: the quota is this program's own. */
  share: QuotaShare | null = null;
  /** Both continue when the counters are reset. */
  readonly recent: RecentUsage;
  /** Null: a fleet has these users. */
  readonly history: UserHistory | null;
  readonly #changed: Set<UserCounter>;

  constructor(
    listener: string,
    id: string,
    { uploadBytes, downloadBytes, allowance, history = null }: Counted,
    changed: Set<UserCounter>,
    recent = new RecentUsage(),
  ) {
    this.recent = recent;
    this.history = history;
    this.listener = listener;
    this.id = id;
    this.uploadBytes = uploadBytes;
    this.downloadBytes = downloadBytes;
    this.accountedUpload = uploadBytes;
    this.accountedDownload = downloadBytes;
    this.allowance = allowance;
    this.#changed = changed;
  }

  get usage(): StoredUsage | null {
    return this.allowance?.store() ?? null;
  }

  /** All nodes of the fleet together have moved so much, without what was counted here and is not accounted for. */
  correct(uploadBytes: number, downloadBytes: number, wallMs: number): void {
    const [upload, download] = [sumOf(uploadBytes, 0), sumOf(downloadBytes, 0)];
    this.uploadBytes = sumOf(this.uploadBytes, upload - this.accountedUpload);
    this.downloadBytes = sumOf(this.downloadBytes, download - this.accountedDownload);
    this.accountedUpload = upload;
    this.accountedDownload = download;
    this.share?.learn(upload + download);
    this.look(wallMs);
  }

  /** Is there anything left of the quota? */
  look(wallMs: number): void {
    this.isOver = isOver(this, wallMs);
    if (!this.isOver) this.returnedBytes = 0;
  }

  /** What may be moved until the quota is used up, or until more of a fleet's is asked for. */
  leftBytes(wallMs: number): number {
    return this.share?.leftBytes ?? this.allowance?.leftBytes(this, wallMs) ?? Number.MAX_SAFE_INTEGER;
  }

  /**
   * Allocates next to nothing. `bytes` is negative for what was counted and never went out. Stops at 2^53-1, where numbers stop
   * being exact.
   */
  count(direction: Direction, bytes: number, wallMs: number): void {
    if (direction === "upload") this.uploadBytes = sumOf(this.uploadBytes, bytes);
    else this.downloadBytes = sumOf(this.downloadBytes, bytes);
    this.recent.count(direction, bytes, wallMs);
    this.history?.count(direction, bytes, wallMs);
    const { allowance } = this;
    if (allowance !== null && allowance.limits.quota !== null) {
      const wasOver = this.isOver;
      allowance.count(direction, bytes, wallMs);
      this.share?.spend(direction, bytes);
      this.look(wallMs);
      if (bytes < 0 && wasOver && !this.isOver && this.share === null) {
        const most = allowance.limits.quota.totalBytes - 1; // who has used nothing is not over
        this.returnedBytes = Math.min(allowance.leftBytes(this, wallMs), most);
        this.look(wallMs);
      }
    }
    if (this.isChanged) return;
    this.isChanged = true;
    this.#changed.add(this);
  }
}

/** Is the quota used up? */
export function isOver(counted: Counted, wallMs: number): boolean {
  const { allowance, share = null, returnedBytes = 0 } = counted;
  if (allowance === null || allowance.limits.quota === null) return false;
  return share?.isOver ?? allowance.leftBytes(counted, wallMs) <= returnedBytes;
}

function sumOf(count: number, bytes: number): number {
  return Math.max(0, Math.min(count + bytes, Number.MAX_SAFE_INTEGER));
}

/** What a counter begins with. */
export interface Counted extends Omit<Traffic, "usage"> {
  readonly allowance: Allowance | null;
  readonly share?: QuotaShare | null;
  readonly returnedBytes?: number;
}

/** The counters of the users that are managed at the moment, by listener and user. */
export class UserCounters {
  readonly #byListener = new Map<string, Map<string, UserCounter>>();
  readonly #changed = new Set<UserCounter>();
  readonly #limited = new Set<UserCounter>();
  readonly #keepsHistory: boolean;
  /** A counter goes by an account of its own until a fleet gives it a share of its quota. In the middle of a change. */
  onUnshared: () => void = () => {};

  constructor(keepsHistory = true) {
    this.#keepsHistory = keepsHistory;
  }

  get(listener: string, id: string): UserCounter | null {
    return this.#byListener.get(listener)?.get(id) ?? null;
  }

  /** A new counter; what is still counted for an earlier one of this user is lost, and meant to be. */
  set(listener: string, id: string, counted: Counted, wallMs: number): void {
    const ofListener = this.#byListener.get(listener) ?? new Map<string, UserCounter>();
    this.#byListener.set(listener, ofListener);
    const before = ofListener.get(id);
    this.#forget(before);
    const known = before?.history ?? counted.history ?? null;
    const history = this.#keepsHistory ? (known ?? new UserHistory()) : null;
    const all = { ...counted, history };
    const counter = new UserCounter(listener, id, all, this.#changed, before?.recent);
    ofListener.set(id, counter);
    counter.look(wallMs);
    this.#keepIfLimited(counter);
  }

  /** Other limits; what was counted stays. */
  limit(listener: string, id: string, allowance: Allowance | null, wallMs: number): void {
    const counter = this.get(listener, id);
    if (counter === null) return;
    counter.allowance = allowance;
    counter.returnedBytes = 0;
    // A share is of one quota. Until the fleet has lent of this one, the account of what is known here stands in for it.
    if (counter.share !== null && !isSameQuota(counter.share.quota, allowance?.limits.quota))
      counter.share = null;
    counter.look(wallMs);
    this.#limited.delete(counter);
    this.#keepIfLimited(counter);
  }

  delete(listener: string, id: string): void {
    this.#forget(this.get(listener, id) ?? undefined);
    this.#byListener.get(listener)?.delete(id);
  }

  /** Stops counting for a listener; answers with what was counted. */
  drop(listener: string): ReadonlyMap<string, Traffic> {
    const dropped = this.#byListener.get(listener) ?? new Map<string, UserCounter>();
    this.#byListener.delete(listener);
    for (const counter of dropped.values()) this.#forget(counter);
    return dropped;
  }

  /** Users whose limits may block them. */
  get limited(): ReadonlySet<UserCounter> {
    return this.#limited;
  }

  *[Symbol.iterator](): Generator<UserCounter> {
    for (const counters of this.#byListener.values()) yield* counters.values();
  }

  /** Those that moved bytes since they were last said to be saved. */
  get changed(): ReadonlySet<UserCounter> {
    return this.#changed;
  }

  saved(counters: Iterable<UserCounter>): void {
    for (const counter of counters) {
      counter.isChanged = false;
      this.#changed.delete(counter);
    }
  }

  /** What was said to be saved is not in the file. Those that count no more are left alone. */
  changedAgain(counters: Iterable<UserCounter>): void {
    for (const counter of counters) {
      if (this.get(counter.listener, counter.id) !== counter) continue;
      if (counter.history !== null) counter.history.isRowStale = !counter.history.isEmpty;
      counter.isChanged = true;
      this.#changed.add(counter);
    }
  }

  #forget(counter: UserCounter | undefined): void {
    if (counter === undefined) return;
    this.saved([counter]);
    this.#limited.delete(counter);
  }

  #keepIfLimited(counter: UserCounter): void {
    const { allowance, share } = counter;
    if (allowance === null || !canBar(allowance.limits)) return;
    this.#limited.add(counter);
    if (allowance.limits.quota !== null && share === null) this.onUnshared();
  }
}
