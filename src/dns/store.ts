import { oldestKey, valueAt } from "#lib/at.ts";
/** Two ways to decide what a full cache forgets. Keys are questions; sizes are what the caller says. */

export interface Store<V> {
  get(key: string): V | undefined;
  set(key: string, value: V, sizeBytes: number): void;
  clear(): void;
  readonly size: number;
}

export interface StoreBounds {
  readonly entries: number;
  readonly bytes: number;
}

interface Slot<V> {
  readonly value: V;
  readonly sizeBytes: number;
}

/** A Map whose order is the order of use. */
class Recency<V> extends Map<string, V> {
  touch(key: string, value: V): void {
    this.delete(key);
    this.set(key, value);
  }

  /** Of a map that has one. */
  get oldest(): string {
    return oldestKey(this);
  }
}

/** Forgets what was not used for the longest time. */
export class LruStore<V> implements Store<V> {
  readonly #slots = new Recency<Slot<V>>();
  readonly #bounds: StoreBounds;
  #bytes = 0;

  constructor(bounds: StoreBounds) {
    this.#bounds = bounds;
  }

  get(key: string): V | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    this.#slots.touch(key, slot);
    return slot.value;
  }

  set(key: string, value: V, sizeBytes: number): void {
    this.#bytes += sizeBytes - (this.#slots.get(key)?.sizeBytes ?? 0);
    this.#slots.touch(key, { value, sizeBytes });
    while (this.#slots.size > this.#bounds.entries || this.#bytes > this.#bounds.bytes) {
      const oldest = this.#slots.oldest;
      this.#bytes -= valueAt(this.#slots, oldest).sizeBytes;
      this.#slots.delete(oldest);
    }
  }

  clear(): void {
    this.#slots.clear();
    this.#bytes = 0;
  }

  get size(): number {
    return this.#slots.size;
  }
}

/**
 * Adaptive replacement (Megiddo and Modha, FAST 2003): names asked once and names asked again are kept apart, and
 * which of the two lists gets more room follows from what was forgotten too early. One sweep over many names does not
 * push out those in daily use.
 */
export class ArcStore<V> implements Store<V> {
  readonly #once = new Recency<Slot<V>>();
  readonly #again = new Recency<Slot<V>>();
  /** Keys only, of what each list forgot lately. */
  readonly #ghostOnce = new Recency<true>();
  readonly #ghostAgain = new Recency<true>();
  readonly #bounds: StoreBounds;
  /** How many entries `once` should have. */
  #target = 0;
  #bytes = 0;

  constructor(bounds: StoreBounds) {
    this.#bounds = bounds;
  }

  get(key: string): V | undefined {
    const slot = this.#once.get(key) ?? this.#again.get(key);
    if (slot === undefined) return undefined;
    this.#once.delete(key);
    this.#again.touch(key, slot);
    return slot.value;
  }

  set(key: string, value: V, sizeBytes: number): void {
    const slot = { value, sizeBytes };
    const old = this.#once.get(key) ?? this.#again.get(key);
    this.#bytes += sizeBytes - (old?.sizeBytes ?? 0);
    if (old !== undefined) (this.#once.has(key) ? this.#once : this.#again).set(key, slot);
    else if (this.#ghostOnce.delete(key)) {
      this.#target = Math.min(this.#bounds.entries, this.#target + ratio(this.#ghostAgain, this.#ghostOnce));
      this.#again.set(key, slot);
    } else if (this.#ghostAgain.delete(key)) {
      this.#target = Math.max(0, this.#target - ratio(this.#ghostOnce, this.#ghostAgain));
      this.#again.set(key, slot);
    } else this.#once.set(key, slot);
    while (this.size > this.#bounds.entries || this.#bytes > this.#bounds.bytes) this.#forgetOne(key);
  }

  /** `fresh` was set just now and goes only when nothing else is left. */
  #forgetOne(fresh: string): void {
    const wanted = this.#once.size > this.#target ? this.#once : this.#again;
    const other = wanted === this.#once ? this.#again : this.#once;
    const list = wanted.size === 0 || (wanted.oldest === fresh && other.size > 0) ? other : wanted;
    const ghosts = list === this.#once ? this.#ghostOnce : this.#ghostAgain;
    const oldest = list.oldest;
    this.#bytes -= valueAt(list, oldest).sizeBytes;
    list.delete(oldest);
    ghosts.set(oldest, true);
    if (ghosts.size > this.#bounds.entries) ghosts.delete(ghosts.oldest);
  }

  clear(): void {
    for (const list of [this.#once, this.#again, this.#ghostOnce, this.#ghostAgain]) list.clear();
    this.#target = 0;
    this.#bytes = 0;
  }

  get size(): number {
    return this.#once.size + this.#again.size;
  }
}

/** How far to move the target: further where the list that gains has few ghosts itself. */
function ratio(other: Recency<true>, own: Recency<true>): number {
  return Math.max(1, Math.floor(other.size / Math.max(1, own.size)));
}
