/** What a policy has counted: one generation of it. Outlives books, and with the store the process. */
import type { Dimension, Policy, QuotaLimits } from "#core/policy.ts";
import { RollingWindow, type StoredWindow } from "#lib/rolling-window.ts";
import type { StoredMoment, SteadyTime } from "#lib/steady-time.ts";
import { addTo, loadCounters, storeCounters, zero, type Counters } from "./counters.ts";
import { isOver, leftBytes } from "./quota.ts";

export class PolicyState {
  /** `<id>`; of an old generation `<id>@<generation>`. */
  key: string;
  readonly dimension: Dimension;
  readonly identity: string;
  /** What the window is measured by. */
  readonly time: SteadyTime;
  generation: number;
  counters: Counters = zero();
  window: RollingWindow | null = null;
  overQuota = false;
  /** Unix seconds; 0: never. */
  lastUpdated = 0;
  lastReset: number;
  /** When it was last configured. */
  lastSeen: number;
  /** Sessions that belong to it now; not stored. */
  active = 0;
  /** Differs from what the store has. */
  dirty = true;
  /** Differs from what the journal has; `journalFrom` is the oldest quota bucket touched since the last commit. */
  journalDirty = false;
  journalFrom = Infinity;
  limits: QuotaLimits | null = null;
  #drops = 0;

  constructor(
    { key, dimension, identity }: { key: string; dimension: Dimension; identity: string },
    generation: number,
    nowSeconds: number,
    time: SteadyTime,
  ) {
    this.time = time;
    this.key = key;
    this.dimension = dimension;
    this.identity = identity;
    this.generation = generation;
    this.lastReset = this.lastSeen = nowSeconds;
  }

  static of(
    { id, dimension, identity }: Policy,
    generation: number,
    nowSeconds: number,
    time: SteadyTime,
  ): PolicyState {
    return new PolicyState({ key: id, dimension, identity }, generation, nowSeconds, time);
  }

  /** Takes the quota in force; a window of another length must have been made a new generation before. */
  setLimits(limits: QuotaLimits | null): void {
    this.limits = limits;
    if (limits !== null) this.window ??= new RollingWindow(limits.windowSeconds);
    this.refresh();
  }

  /** Looks whether time has freed the window. */
  refresh(): void {
    this.window?.expire(this.time.nowSeconds());
    this.#followDrops();
    const over = this.limits !== null && this.window !== null && isOver(this.limits, this.window);
    if (over !== this.overQuota) this.touch();
    this.overQuota = over;
  }

  /** Counts against the quota; true: this transfer has reached a cap. */
  use(upload: number, download: number): boolean {
    const { limits, window } = this;
    if (limits === null || window === null) return false;
    const nowSeconds = this.time.nowSeconds();
    window.add(nowSeconds, upload, download);
    this.touch();
    this.journalFrom = Math.min(this.journalFrom, nowSeconds - window.widthSeconds);
    this.#followDrops();
    const was = this.overQuota;
    this.overQuota = isOver(limits, window);
    return this.overQuota && !was;
  }

  /** Where buckets have left, those that are left are all to be written anew. */
  #followDrops(): void {
    const drops = this.window?.drops ?? 0;
    if (drops === this.#drops) return;
    this.#drops = drops;
    this.journalFrom = -Infinity;
    this.touch();
  }

  /** Bytes until its quota is used up. */
  get leftBytes(): number {
    const { limits, window } = this;
    return limits === null || window === null ? Number.MAX_SAFE_INTEGER : leftBytes(limits, window);
  }

  /** Answers with what takes it back; what has been counted since stays. */
  reset(nowSeconds: number): () => void {
    const { counters, lastReset } = this;
    const rows = this.window?.store() ?? [];
    this.generation++;
    this.counters = zero();
    this.window?.clear();
    this.overQuota = false;
    this.lastReset = nowSeconds;
    this.touch();
    return () => {
      this.generation--;
      addTo(this.counters, counters);
      this.lastReset = lastReset;
      const since = this.window?.store() ?? [];
      this.window?.clear();
      for (const [start, upload, download] of [...rows, ...since]) this.window?.add(start, upload, download);
      this.overQuota = this.limits !== null && this.window !== null && isOver(this.limits, this.window);
      this.journalFrom = -Infinity;
      this.touch();
    };
  }

  /** Goes on from what was stored of this policy. What was counted meanwhile counts as used now. */
  takeIn(older: PolicyState): void {
    const { window } = this;
    this.generation = older.generation;
    this.lastReset = older.lastReset;
    this.lastUpdated = Math.max(this.lastUpdated, older.lastUpdated);
    addTo(this.counters, older.counters);
    this.window = older.window ?? window;
    this.#drops = this.window?.drops ?? 0;
    if (window !== null && window !== this.window) this.use(window.upload, window.download);
    this.journalFrom = -Infinity;
    this.touch();
    this.refresh();
  }

  touch(): void {
    this.dirty = this.journalDirty = true;
  }

  /** JSON; `fromSeconds` leaves older quota buckets out, which then are those that were stored last. */
  encode(fromSeconds = -Infinity): string {
    return JSON.stringify({
      id: this.key,
      dimension: this.dimension,
      identity: this.identity,
      generation: this.generation,
      counters: storeCounters(this.counters),
      window: this.window?.windowSeconds ?? 0,
      ...(this.window === null ? {} : { moment: this.time.moment() }),
      buckets: this.window?.store(fromSeconds) ?? [],
      from: fromSeconds === -Infinity ? null : Math.min(fromSeconds, Number.MAX_SAFE_INTEGER), // JSON has no infinity
      over_quota: this.overQuota,
      last_updated: this.lastUpdated,
      last_reset: this.lastReset,
      last_seen: this.lastSeen,
    });
  }

  /** Throws where the text is no state. `time` goes on from what it says. */
  static decode(text: string, time: SteadyTime): PolicyState {
    const stored: StoredState = JSON.parse(text);
    const { id: key, dimension, identity } = stored;
    if (typeof key !== "string" || !Array.isArray(stored.buckets))
      throw new TypeError("not a policy's state");
    const state = new PolicyState({ key, dimension, identity }, stored.generation, stored.last_reset, time);
    state.counters = loadCounters(stored.counters);
    if (stored.window > 0) {
      state.window = new RollingWindow(stored.window, stored.buckets);
      if (stored.moment !== undefined) time.goOnFrom(stored.moment);
      time.goOnBehind(stored.buckets.at(-1)?.[0] ?? -Infinity);
    }
    state.overQuota = stored.over_quota;
    state.lastUpdated = stored.last_updated;
    state.lastSeen = stored.last_seen;
    state.journalFrom = stored.from ?? -Infinity;
    state.dirty = false;
    return state;
  }
}

interface StoredState {
  readonly id: string;
  readonly dimension: Dimension;
  readonly identity: string;
  readonly generation: number;
  readonly counters: unknown;
  readonly window: number;
  /** Of the writing, by the time that the buckets stand in. */
  readonly moment?: StoredMoment;
  readonly buckets: StoredWindow;
  /** Only buckets from here on are in `buckets`; null or absent: all. */
  readonly from?: number | null;
  readonly over_quota: boolean;
  readonly last_updated: number;
  readonly last_reset: number;
  readonly last_seen: number;
}
