/** Numbers that look random and can be had again: xorshift over 32 bits. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  /** 0 … bound - 1. */
  below(bound: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) % bound;
  }

  bytes(size: number): Buffer {
    const out = Buffer.allocUnsafe(size);
    for (let at = 0; at < size; at++) out[at] = this.below(256);
    return out;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}
