/**
 * A map by text that never changes: a change is another map, and costs the same with ten entries and with ten
 * thousand. A holder may read its version for ever. Iterates in no order.
 */
export class PersistentMap<V> implements ReadonlyMap<string, V> {
  readonly size: number;
  readonly #buckets: readonly (ReadonlyMap<string, V> | undefined)[];

  private constructor(buckets: readonly (ReadonlyMap<string, V> | undefined)[], size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  /** The same map where it is one already. */
  static from<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    if (entries instanceof PersistentMap) return entries;
    return new PersistentMap<V>(Array.from({ length: BUCKETS }), 0).with(entries);
  }

  /** The map after some changes, of one key the last; null takes the key out. */
  with(changes: Iterable<readonly [key: string, value: V | null]>): PersistentMap<V> {
    const buckets = [...this.#buckets];
    const fresh = new Map<number, Map<string, V>>();
    let { size } = this;
    for (const [key, value] of changes) {
      const at = bucketOf(key);
      let bucket = fresh.get(at);
      if (bucket === undefined) fresh.set(at, (bucket = new Map(buckets[at])));
      buckets[at] = bucket;
      size -= bucket.size;
      if (value === null) bucket.delete(key);
      else bucket.set(key, value);
      size += bucket.size;
    }
    return new PersistentMap(buckets, size);
  }

  get(key: string): V | undefined {
    return this.#buckets[bucketOf(key)]?.get(key);
  }

  has(key: string): boolean {
    return this.#buckets[bucketOf(key)]?.has(key) === true;
  }

  *entries(): MapIterator<[string, V]> {
    for (const bucket of this.#buckets) if (bucket !== undefined) yield* bucket;
  }

  *keys(): MapIterator<string> {
    for (const bucket of this.#buckets) if (bucket !== undefined) yield* bucket.keys();
  }

  *values(): MapIterator<V> {
    for (const bucket of this.#buckets) if (bucket !== undefined) yield* bucket.values();
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries();
  }

  forEach(visit: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this) visit(value, key, this);
  }
}

/** A power of two; some twenty entries in each with ten thousand. */
const BUCKETS = 512;

/** FNV-1a over the UTF-16 units. */
function bucketOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 15)) & (BUCKETS - 1);
}
