import { float64At } from "./at.ts";

/** Usage inside a rolling window: sums that run along with the buckets that enter and leave. */

const MIN_WIDTH_SECONDS = 60;
const PARTS = 1024;

/** What is stored: start, upload and download of each bucket, oldest first. */
export type StoredWindow = readonly (readonly [start: number, upload: number, download: number])[];

/** Width of a bucket: a 1024th of the window (or another part of it), at least a minute, in whole seconds. */
export function widthOf(windowSeconds: number, parts = PARTS): number {
  return Math.round(Math.max(MIN_WIDTH_SECONDS, windowSeconds / parts));
}

/**
 * Bytes of the last `windowSeconds`, at most one bucket's width too many. Adding is O(1): a ring of buckets aligned to
 * the Unix epoch, and running sums. Time is a `SteadyTime`'s: what has left the window is gone, so a clock that
 * can be set is none to measure by.
 */
export class RollingWindow {
  readonly windowSeconds: number;
  readonly widthSeconds: number;
  upload = 0;
  download = 0;
  /** How many buckets have left: what was stored of them before is not so any more. */
  drops = 0;
  readonly #capacity: number;
  readonly #starts: Float64Array;
  readonly #uploads: Float64Array;
  readonly #downloads: Float64Array;
  #first = 0;
  #count = 0;

  constructor(windowSeconds: number, stored: StoredWindow = [], parts = PARTS) {
    this.windowSeconds = windowSeconds;
    this.widthSeconds = widthOf(windowSeconds, parts);
    this.#capacity = Math.ceil(windowSeconds / this.widthSeconds) + 2;
    this.#starts = new Float64Array(this.#capacity);
    this.#uploads = new Float64Array(this.#capacity);
    this.#downloads = new Float64Array(this.#capacity);
    for (const [start, upload, download] of stored) this.add(start, upload, download);
  }

  /** Number of buckets held. */
  get size(): number {
    return this.#count;
  }

  add(nowSeconds: number, upload: number, download: number): void {
    this.expire(nowSeconds);
    const at = this.#newest(Math.floor(nowSeconds / this.widthSeconds) * this.widthSeconds);
    this.#uploads[at] = float64At(this.#uploads, at) + upload;
    this.#downloads[at] = float64At(this.#downloads, at) + download;
    this.upload += upload;
    this.download += download;
  }

  /** Drops what has left the window. */
  expire(nowSeconds: number): void {
    const border = nowSeconds - this.windowSeconds - this.widthSeconds;
    while (this.#count > 0 && float64At(this.#starts, this.#first) <= border) this.#dropFirst();
  }

  clear(): void {
    this.#count = this.upload = this.download = 0;
  }

  /** Oldest first; from a bucket start on. */
  store(fromSeconds = -Infinity): StoredWindow {
    const rows: [number, number, number][] = [];
    for (let nth = 0; nth < this.#count; nth++) {
      const at = (this.#first + nth) % this.#capacity;
      const start = float64At(this.#starts, at);
      if (start >= fromSeconds)
        rows.push([start, float64At(this.#uploads, at), float64At(this.#downloads, at)]);
    }
    return rows;
  }

  /** Index of the bucket that counts for this start. */
  #newest(start: number): number {
    const last = (this.#first + this.#count - 1) % this.#capacity;
    if (this.#count > 0 && float64At(this.#starts, last) >= start) return last;
    if (this.#count === this.#capacity) this.#dropFirst(); // cannot be: the ring holds more than a window has
    const at = (this.#first + this.#count) % this.#capacity;
    this.#starts[at] = start;
    this.#uploads[at] = this.#downloads[at] = 0;
    this.#count++;
    return at;
  }

  #dropFirst(): void {
    this.upload -= float64At(this.#uploads, this.#first);
    this.download -= float64At(this.#downloads, this.#first);
    this.#first = (this.#first + 1) % this.#capacity;
    this.#count--;
    this.drops++;
  }
}
