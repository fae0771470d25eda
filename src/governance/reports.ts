/** All report series, and how they are asked. */
import type { Policy } from "#core/policy.ts";
import { openCalendar, type Calendar, type Granularity } from "./calendar.ts";
import { addTo, zero, type Counters } from "./counters.ts";
import { Series, type Bucket, type Retention } from "./series.ts";
import type { ReportSettings } from "./settings.ts";
import type { Renames } from "./state-book.ts";

const MOST_SERIES = 4096;
export const MOST_KEYS = 128;

/** `<dimension>:<id>` of each policy in order, then every pair, its members in byte order; at most 128. */
export function keysOf(policies: readonly Pick<Policy, "dimension" | "id">[]): readonly string[] {
  const single = policies.map(({ dimension, id }) => `${dimension}:${id}`);
  const keys = single.slice(0, MOST_KEYS);
  for (const [at, one] of single.entries())
    for (const other of single.slice(at + 1)) {
      if (keys.length >= MOST_KEYS) return keys;
      keys.push(pairKey(one, other));
    }
  return keys;
}

function pairKey(one: string, other: string): string {
  return one < other ? `${one}|${other}` : `${other}|${one}`;
}

export class Reports {
  /** Null: nothing is recorded; what is there can be read and ages. */
  #settings: ReportSettings | null = null;
  #calendar: Calendar = openCalendar(null);
  readonly #series = new Map<string, Series>();
  readonly #gone = new Set<string>();

  /** Of more than 4,096, those updated last are kept. */
  constructor(loaded: readonly Series[] = []) {
    const kept = oldestFirst(loaded).slice(-MOST_SERIES);
    for (const series of kept) this.#series.set(series.key, series);
    for (const { key } of loaded) if (!this.#series.has(key)) this.#gone.add(key);
  }

  configure(settings: ReportSettings): void {
    this.#settings = settings;
    this.#calendar = openCalendar(settings.timeZone);
  }

  all(): Iterable<Series> {
    return this.#series.values();
  }

  get gone(): ReadonlySet<string> {
    return this.#gone;
  }

  forgetGone(keys: Iterable<string>): void {
    for (const key of keys) this.#gone.delete(key);
  }

  /** At 4,096 series a new key is not recorded; existing series continue. */
  record(keys: readonly string[], hour: number, counters: Readonly<Counters>, nowSeconds: number): void {
    if (this.#settings?.enabled !== true) return;
    for (const key of keys) {
      let series = this.#series.get(key);
      if (series === undefined) {
        if (this.#series.size >= MOST_SERIES) continue;
        this.#series.set(key, (series = new Series(key, nowSeconds)));
        this.#gone.delete(key);
      }
      series.record(hour, counters, nowSeconds);
    }
  }

  /** Unknown keys have no buckets. */
  query(key: string, granularity: Granularity, from: number, to: number): readonly Bucket[] {
    return this.#series.get(key)?.query(granularity, from, to, this.#calendar) ?? [];
  }

  /** History follows its policy: all renames happen at once, so ids may change places. */
  rename(renames: Renames): void {
    if (renames.size === 0) return;
    const moved: [Series, string][] = [];
    for (const [key, series] of this.#series) {
      const members = key.split("|").map((member) => renames.get(member) ?? member);
      const next = members.sort((a, b) => (a < b ? -1 : 1)).join("|");
      if (next !== key) moved.push([series, next]);
    }
    for (const [{ key }] of moved) this.#drop(key);
    for (const [series, key] of moved) {
      const there = this.#series.get(key);
      if (there !== undefined) {
        there.merge(series);
        continue;
      }
      series.key = key;
      series.dirty = series.journalDirty = true;
      this.#series.set(key, series);
      this.#gone.delete(key);
    }
  }

  /** The same of a store that was opened later: series that both have are added up. */
  takeIn(older: Reports): void {
    for (const key of older.gone) this.#gone.add(key);
    for (const series of older.all()) {
      const own = this.#series.get(series.key);
      if (own !== undefined) own.merge(series);
      else if (this.#series.size < MOST_SERIES) this.#series.set(series.key, series);
      this.#gone.delete(series.key);
    }
  }

  /**
   * Rolls finished hours up, drops what is too old, and series whose policies are gone and that were quiet for long.
   * `settledSeconds`: what is dropped for its age goes by this time.
   */
  maintain(nowSeconds: number, settledSeconds: number, configured: ReadonlySet<string>): void {
    const settings = this.#settings;
    if (settings === null) return;
    const retention: Retention = {
      hourlySeconds: settings.hourlyRetentionMs / 1000,
      dailySeconds: settings.dailyRetentionMs / 1000,
      monthlySeconds: settings.monthlyRetentionMs / 1000,
    };
    const orphanBorder = settledSeconds - settings.orphanRetentionMs / 1000;
    for (const series of this.#series.values()) {
      series.rollUp(nowSeconds, this.#calendar);
      series.age(settledSeconds, retention);
      const orphan = !series.key.split("|").every((member) => configured.has(member));
      if (series.isEmpty || (orphan && series.updated < orphanBorder)) this.#drop(series.key);
    }
  }

  /** Drops a tenth of the series, those that were updated longest ago; answers with how many. */
  dropOldest(): number {
    const doomed = oldestFirst([...this.#series.values()]).slice(0, Math.ceil(this.#series.size / 10));
    for (const { key } of doomed) this.#drop(key);
    return doomed.length;
  }

  #drop(key: string): void {
    this.#series.delete(key);
    this.#gone.add(key);
  }
}

export function sumOf(buckets: readonly Bucket[]): Counters {
  const sum = zero();
  for (const { counters } of buckets) addTo(sum, counters);
  return sum;
}

function oldestFirst(series: readonly Series[]): readonly Series[] {
  return [...series].sort((a, b) => a.updated - b.updated || (a.key < b.key ? -1 : 1));
}
