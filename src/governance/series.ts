/** One report series: hours as they were recorded, days and months that finished hours were added to. */
import { HOUR_SECONDS, type Calendar, type Granularity } from "./calendar.ts";
import { addTo, differenceOf, loadCounters, storeCounters, zero, type Counters } from "./counters.ts";

type Buckets = Map<number, Counters>;

export interface Bucket {
  /** Unix seconds. */
  readonly start: number;
  readonly counters: Readonly<Counters>;
}

export interface Retention {
  readonly hourlySeconds: number;
  readonly dailySeconds: number;
  readonly monthlySeconds: number;
}

export class Series {
  key: string;
  /** Unix seconds of the last record. */
  updated: number;
  dirty = true;
  journalDirty = false;
  /** The oldest hour touched since the last commit. */
  journalFrom = Infinity;
  #hours: Buckets = new Map();
  #days: Buckets = new Map();
  #months: Buckets = new Map();
  /** Hours that were added to their day and month. */
  #rolled = new Set<number>();
  /** What came to such an hour since then. */
  #late: Buckets = new Map();

  constructor(key: string, updated: number) {
    this.key = key;
    this.updated = updated;
  }

  get isEmpty(): boolean {
    return this.#hours.size + this.#days.size + this.#months.size === 0;
  }

  /** Adds to the hour that begins at `hour`; it may have been rolled up, because the clock was set back. */
  record(hour: number, counters: Readonly<Counters>, nowSeconds: number): void {
    this.#addToHour(hour, counters);
    this.updated = nowSeconds;
    this.dirty = this.journalDirty = true;
    this.journalFrom = Math.min(this.journalFrom, hour);
  }

  /** Adds every finished hour to its day and month, once. */
  rollUp(nowSeconds: number, calendar: Calendar): void {
    for (const [hour, counters] of this.#hours) {
      if (hour + HOUR_SECONDS > nowSeconds || this.#rolled.has(hour)) continue;
      this.#rollInto(hour, counters, calendar);
      this.#rolled.add(hour);
      this.dirty = true;
    }
    for (const [hour, counters] of this.#late) this.#rollInto(hour, counters, calendar);
    if (this.#late.size > 0) this.dirty = true;
    this.#late.clear();
  }

  #addToHour(hour: number, counters: Readonly<Counters>): void {
    addTo(bucketOf(this.#hours, hour), counters);
    if (this.#rolled.has(hour)) addTo(bucketOf(this.#late, hour), counters);
  }

  #rollInto(hour: number, counters: Readonly<Counters>, calendar: Calendar): void {
    addTo(bucketOf(this.#days, calendar.dayStart(hour)), counters);
    addTo(bucketOf(this.#months, calendar.monthStart(hour)), counters);
  }

  /** Drops what is older than it may become; `rollUp` comes first. */
  age(nowSeconds: number, { hourlySeconds, dailySeconds, monthlySeconds }: Retention): void {
    const drop = (buckets: Buckets, before: number): void => {
      for (const start of buckets.keys())
        if (start < before) {
          buckets.delete(start);
          this.dirty = true;
        }
    };
    drop(this.#hours, nowSeconds - hourlySeconds);
    for (const hour of this.#rolled) if (!this.#hours.has(hour)) this.#rolled.delete(hour);
    drop(this.#days, nowSeconds - dailySeconds);
    drop(this.#months, nowSeconds - monthlySeconds);
  }

  /** Buckets with `from` <= start < `to`, ascending, those of hours that are not rolled up included. */
  query(granularity: Granularity, from: number, to: number, calendar: Calendar): readonly Bucket[] {
    const found = granularity === "hour" ? this.#hours : this.#summed(granularity, calendar);
    return [...found]
      .filter(([start]) => from <= start && start < to)
      .sort(([a], [b]) => a - b)
      .map(([start, counters]) => ({ start, counters }));
  }

  #summed(granularity: "day" | "month", calendar: Calendar): Buckets {
    const stored = granularity === "day" ? this.#days : this.#months;
    const sums: Buckets = new Map([...stored].map(([start, counters]) => [start, { ...counters }]));
    const startOf = (at: number) => (granularity === "day" ? calendar.dayStart(at) : calendar.monthStart(at));
    for (const [hour, counters] of this.#hours)
      if (!this.#rolled.has(hour)) addTo(bucketOf(sums, startOf(hour)), counters);
    for (const [hour, counters] of this.#late) addTo(bucketOf(sums, startOf(hour)), counters);
    return sums;
  }

  /** Takes over all that another series has. */
  merge(other: Series): void {
    for (const hour of other.#rolled.difference(this.#rolled)) {
      const counters = this.#hours.get(hour); // which the day and the month do not have yet
      if (counters !== undefined) addTo(bucketOf(this.#late, hour), counters);
      this.#rolled.add(hour);
    }
    for (const [hour, counters] of other.#hours)
      if (other.#rolled.has(hour)) addTo(bucketOf(this.#hours, hour), counters);
      else this.#addToHour(hour, counters);
    for (const [into, from] of [
      [this.#days, other.#days],
      [this.#months, other.#months],
      [this.#late, other.#late],
    ] as const)
      for (const [start, counters] of from) addTo(bucketOf(into, start), counters);
    this.updated = Math.max(this.updated, other.updated);
    this.dirty = true;
  }

  encode(): string {
    return JSON.stringify({
      key: this.key,
      updated: this.updated,
      hourly: stored(this.#hours),
      daily: stored(this.#days),
      monthly: stored(this.#months),
      rolled: [...this.#rolled],
      ...(this.#late.size === 0 ? {} : { late: stored(this.#late) }),
    });
  }

  /** The hours touched since the last commit, for the journal. */
  encodeRecent(): string {
    const recent = new Map([...this.#hours].filter(([hour]) => hour >= this.journalFrom));
    return JSON.stringify({ key: this.key, updated: this.updated, hourly: stored(recent) });
  }

  /** Puts hours of the journal, which are newer, in the place of those stored. */
  fold(text: string): void {
    const { updated, hourly }: StoredSeries = JSON.parse(text);
    for (const [hour, counters] of loaded(hourly))
      this.#addToHour(hour, differenceOf(counters, bucketOf(this.#hours, hour)));
    this.updated = Math.max(this.updated, updated);
    this.dirty = true;
    this.journalFrom = -Infinity; // only the journal has them yet
  }

  /** Throws where the text is no series. */
  static decode(text: string): Series {
    const { key, updated, hourly, daily, monthly, rolled, late = {} }: StoredSeries = JSON.parse(text);
    if (typeof key !== "string" || !Array.isArray(rolled)) throw new TypeError("not a report series");
    const series = new Series(key, updated);
    series.#hours = loaded(hourly);
    series.#days = loaded(daily);
    series.#months = loaded(monthly);
    series.#rolled = new Set<number>(rolled);
    series.#late = loaded(late);
    series.dirty = false;
    return series;
  }
}

interface StoredSeries {
  readonly key: string;
  readonly updated: number;
  readonly hourly: Readonly<Record<string, unknown>>;
  readonly daily: Readonly<Record<string, unknown>>;
  readonly monthly: Readonly<Record<string, unknown>>;
  readonly rolled: unknown;
  readonly late?: Readonly<Record<string, unknown>>;
}

function bucketOf(buckets: Buckets, start: number): Counters {
  let bucket = buckets.get(start);
  if (bucket === undefined) buckets.set(start, (bucket = zero()));
  return bucket;
}

function stored(buckets: Buckets): Record<string, unknown> {
  return Object.fromEntries([...buckets].map(([start, counters]) => [start, storeCounters(counters)]));
}

function loaded(buckets: Readonly<Record<string, unknown>>): Buckets {
  return new Map(
    Object.entries(buckets).map(([start, counters]) => [Number(start), loadCounters(counters)] as const),
  );
}
