/**
 * A Map for what comes and goes all the time, in the order in which it came.
 *
 * V8 (14, as in Node 26) never shrinks or cleans the table of a Map or a Set in place: it makes another one, to which the
 * old one points for the sake of iterators, and the old one keeps what it held. Once one of these tables is old enough for
 * the second generation, every later one is reached from it, dead or not, and with it everything that ever stood in the
 * map, until the whole heap is collected: each connection was copied twice by the collector, and none died young. So there
 * is a fresh Map here before the tables can make a chain: after as many removals as there are entries left.
 */
export class PassingMap<K, V> {
  #map = new Map<K, V>();
  #removed = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  set(key: K, value: V): void {
    if (this.#removed > this.#map.size) {
      this.#removed = 0;
      this.#map = new Map(this.#map);
    }
    this.#map.set(key, value);
  }

  delete(key: K): boolean {
    const was = this.#map.delete(key);
    if (was) this.#removed++;
    return was;
  }

  clear(): void {
    this.#map = new Map();
    this.#removed = 0;
  }

  /** As `keys`, with nothing made for each of them. */
  forEachKey(on: (key: K) => void): void {
    const map = this.#map;
    map.forEach((_, key) => {
      if (map === this.#map || this.#map.has(key)) on(key);
    });
  }

  /** What is removed meanwhile does not come any more; what is added may. */
  *keys(): Generator<K> {
    const map = this.#map;
    for (const key of map.keys()) if (map === this.#map || this.#map.has(key)) yield key;
  }

  /** As `keys`. Looks a key up only where there is a fresh Map meanwhile. */
  *values(): Generator<V> {
    const map = this.#map;
    for (const [key, value] of map)
      if (map === this.#map) yield value;
      else if (this.#map.has(key)) yield this.#map.get(key) as V;
  }
}
