import { randomBytes } from "node:crypto";
import { uint32At } from "./at.ts";
import { KeyedHash } from "./keyed-hash.ts";

const LEAST_SLOTS = 1024;
const KEY_BYTES = 8;

/** The keys of all sets of a thread. */
const keys = { low: new KeyedHash(randomBytes(KEY_BYTES)), high: new KeyedHash(randomBytes(KEY_BYTES)) };

/**
 * A set of byte strings that knows them by 64 bits each, hashed under keys that are drawn at the start: of 100,000 members one
 * is confused with another value in 10¹⁴ questions, and without the keys no such values can be chosen. It has 16 to 32 bytes for each, none of
 * them on the heap; a Set of strings has a string for each, and the runtime looks up each of those in a table of its own.
 */
export class Fingerprints {
  /** Two words a slot, low and high; the high one is 0 where the slot is free. */
  #slots = new Uint32Array(2 * LEAST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(value: Uint8Array): boolean {
    return this.#find(lowOf(value), highOf(value)) < 0;
  }

  /** False where it was there. */
  add(value: Uint8Array): boolean {
    const [low, high] = [lowOf(value), highOf(value)];
    const at = this.#find(low, high);
    if (at < 0) return false;
    this.#slots[at] = low;
    this.#slots[at + 1] = high;
    this.#size++;
    if (4 * this.#size > this.#slots.length) this.#grow();
    return true;
  }

  clear(): void {
    this.#slots = new Uint32Array(2 * LEAST_SLOTS);
    this.#size = 0;
  }

  /** The free slot for it; -1: it is there. At most half of the slots are taken. */
  #find(low: number, high: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let at = (low << 1) & mask; ; at = (at + 2) & mask) {
      const [one, other] = [uint32At(slots, at), uint32At(slots, at + 1)];
      if (other === high && one === low) return -1;
      if (other === 0) return at;
    }
  }

  #grow(): void {
    const full = this.#slots;
    this.#slots = new Uint32Array(2 * full.length);
    for (let from = 0; from < full.length; from += 2) {
      const [low, high] = [uint32At(full, from), uint32At(full, from + 1)];
      if (high === 0) continue;
      const at = this.#find(low, high);
      this.#slots[at] = low;
      this.#slots[at + 1] = high;
    }
  }
}

const lowOf = (value: Uint8Array): number => keys.low.of(value, 0, value.length);
/** Never 0, which a free slot has. */
const highOf = (value: Uint8Array): number => keys.high.of(value, 0, value.length) || 1;
