/** What one user has moved by hour and by day: kept in the state file, in the transactions that write the counters. */
import type { Direction } from "#core/meter.ts";
import type { UsageStep } from "#core/users.ts";

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;
/** Two days, without the hour that goes on. The oldest goes first; so with days. */
const MOST_HOURS = 48;
/** A month and the whole one before it. */
export const MOST_DAYS = 62;
/** Numbers of a bucket: Unix seconds at which it begins, bytes up, bytes down. */
const WIDTH = 3;

/** Buckets one after the other, ascending by their begin; those in which nothing was moved are left out. */
export interface StoredHistory {
  readonly hours: readonly number[];
  /** In UTC. */
  readonly days: readonly number[];
}

export type StoredHour = readonly [start: number, upload: number, download: number];

const NOTHING: StoredHistory = { hours: [], days: [] };

/**
 * The hour that goes on is stored with the counters, so a second costs the same whatever the length of the history. Closed
 * hours and days have a row of their own, which is written once in an hour with traffic.
 */
export class UserHistory {
  /** The row of closed hours and days in the file is not as it is here. */
  isRowStale = false;
  readonly #hours: number[];
  readonly #days: number[];
  #startMs = 0;
  #endMs = 0;
  #upload = 0;
  #download = 0;

  constructor({ hours, days }: StoredHistory = NOTHING, open: StoredHour | null = null) {
    this.#hours = [...hours];
    this.#days = [...days];
    if (open !== null) this.#open(...open);
  }

  /** `bytes` is negative for what was counted and never went out. Allocates at most where an hour begins. */
  count(direction: Direction, bytes: number, wallMs: number): void {
    if (wallMs >= this.#endMs || wallMs < this.#startMs) this.#turn(wallMs);
    if (direction === "upload") this.#upload += bytes;
    else this.#download += bytes;
    if (bytes < 0) this.#settle();
  }

  get isEmpty(): boolean {
    return this.#days.length === 0 && this.#upload + this.#download === 0;
  }

  /** The hour that goes on; null: nothing was moved in it. */
  get openHour(): StoredHour | null {
    if (this.#upload + this.#download === 0) return null;
    return [this.#startMs / 1000, this.#upload, this.#download];
  }

  /** What is closed. */
  get closed(): StoredHistory {
    return { hours: this.#hours, days: this.#days };
  }

  /** What is closed, and the hour that goes on as if it had ended. */
  whole(): StoredHistory {
    const copy = new UserHistory(this.closed, this.openHour);
    copy.#close();
    return copy.closed;
  }

  /** The last `days` days, today among them, and the last two days by hour. */
  shown(wallMs: number, days: number): { readonly days: UsageStep[]; readonly hours: UsageStep[] } {
    const now = wallMs / 1000;
    const whole = this.whole();
    return {
      days: stepsOf(whole.days, startOf(now, DAY_SECONDS) - (days - 1) * DAY_SECONDS, now),
      hours: stepsOf(whole.hours, startOf(now, HOUR_SECONDS) - (MOST_HOURS - 1) * HOUR_SECONDS, now),
    };
  }

  /** A clock that was set back finds the hours and days that it left. */
  #turn(wallMs: number): void {
    this.#close();
    this.#open(startOf(wallMs / 1000, HOUR_SECONDS), 0, 0);
  }

  #open(start: number, upload: number, download: number): void {
    this.#startMs = start * 1000;
    this.#endMs = this.#startMs + HOUR_SECONDS * 1000;
    this.#upload = upload;
    this.#download = download;
  }

  #close(): void {
    const { openHour } = this;
    if (openHour === null) return;
    const [start, upload, download] = openHour;
    addTo(this.#hours, openHour, MOST_HOURS);
    addTo(this.#days, [startOf(start, DAY_SECONDS), upload, download], MOST_DAYS);
    this.#upload = this.#download = 0;
    this.isRowStale = true;
  }

  /** What the hour lacks was counted in one before it. */
  #settle(): void {
    const [upload, download] = [Math.min(0, this.#upload), Math.min(0, this.#download)];
    if (upload + download === 0) return;
    for (const buckets of [this.#hours, this.#days]) takeOff(buckets, -upload, -download);
    this.#upload -= upload;
    this.#download -= download;
    this.isRowStale = true;
  }
}

function startOf(atSeconds: number, lengthSeconds: number): number {
  return Math.floor(atSeconds / lengthSeconds) * lengthSeconds;
}

function addTo(buckets: number[], [start, upload, download]: StoredHour, most: number): void {
  let at = buckets.length;
  while (at > 0 && (buckets[at - WIDTH] ?? 0) > start) at -= WIDTH;
  if (at > 0 && buckets[at - WIDTH] === start) {
    buckets[at - 2] = sumOf(buckets[at - 2], upload);
    buckets[at - 1] = sumOf(buckets[at - 1], download);
    return;
  }
  buckets.splice(at, 0, start, upload, download);
  if (buckets.length > most * WIDTH) buckets.splice(0, WIDTH);
}

/** From the newest on. */
function takeOff(buckets: number[], upload: number, download: number): void {
  for (let at = buckets.length - WIDTH; at >= 0 && upload + download > 0; at -= WIDTH) {
    const [up, down] = [Math.min(upload, buckets[at + 1] ?? 0), Math.min(download, buckets[at + 2] ?? 0)];
    buckets[at + 1] = sumOf(buckets[at + 1], -up);
    buckets[at + 2] = sumOf(buckets[at + 2], -down);
    upload -= up;
    download -= down;
  }
}

/** As counters: stops where numbers stop being exact. */
function sumOf(amount = 0, bytes: number): number {
  return Math.min(amount + bytes, Number.MAX_SAFE_INTEGER);
}

function stepsOf(buckets: readonly number[], fromSeconds: number, nowSeconds: number): UsageStep[] {
  const steps: UsageStep[] = [];
  for (let at = 0; at < buckets.length; at += WIDTH) {
    const [startSeconds = 0, uploadBytes = 0, downloadBytes = 0] = buckets.slice(at, at + WIDTH);
    if (startSeconds >= fromSeconds && startSeconds <= nowSeconds)
      steps.push({ startSeconds, uploadBytes, downloadBytes });
  }
  return steps;
}
