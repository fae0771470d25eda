/** A hash table whose memory is made once: keys of some 32-bit words, values that are slot numbers. */
import { randomInt } from "node:crypto";
import { int32At } from "#lib/at.ts";

const NONE = -1;
const GOLDEN = 0x9e37_79b1 | 0;

/**
 * Holds `slots` keys at most. To look for a key, write its words into `key` and call `find`. Freed slots are given out
 * again in the order in which they became free, so a slot stays unused as long as possible.
 */
export class FlowTable {
  /** The key that `find` and `insert` are about. */
  readonly key: Int32Array;
  readonly #words: number;
  readonly #slots: number;
  readonly #keys: Int32Array;
  readonly #heads: Int32Array;
  readonly #next: Int32Array;
  readonly #live: Uint8Array;
  /** A ring of the free slots. */
  readonly #free: Int32Array;
  #freeFrom = 0;
  #freeCount: number;
  /** Prevents outsiders from choosing keys that fall into one bucket. */
  readonly #seed = randomInt(2 ** 32) | 0;

  constructor(slots: number, words: number) {
    this.#slots = slots;
    this.#words = words;
    this.key = new Int32Array(words);
    this.#keys = new Int32Array(slots * words);
    this.#heads = new Int32Array(2 ** Math.ceil(Math.log2(slots))).fill(NONE);
    this.#next = new Int32Array(slots).fill(NONE);
    this.#live = new Uint8Array(slots);
    this.#free = Int32Array.from({ length: slots }, (_, slot) => slot);
    this.#freeCount = slots;
  }

  get size(): number {
    return this.#slots - this.#freeCount;
  }

  isLive(slot: number): boolean {
    return this.#live[slot] === 1;
  }

  /** Word `index` of a live slot's key. */
  word(slot: number, index: number): number {
    return int32At(this.#keys, slot * this.#words + index);
  }

  /** -1 where `key` is not in the table. */
  find(): number {
    let slot = int32At(this.#heads, this.#bucketOf(this.key, 0));
    while (slot !== NONE && !this.#holds(slot)) slot = int32At(this.#next, slot);
    return slot;
  }

  /** `key` must not be in the table. -1 where it is full. */
  insert(): number {
    if (this.#freeCount === 0) return NONE;
    const slot = int32At(this.#free, this.#freeFrom);
    this.#freeFrom = (this.#freeFrom + 1) % this.#slots;
    this.#freeCount--;
    this.place(slot);
    return slot;
  }

  /** Free slots in the order in which they are given out. */
  get free(): Int32Array {
    return Int32Array.from({ length: this.#freeCount }, (_, at) =>
      int32At(this.#free, (this.#freeFrom + at) % this.#slots),
    );
  }

  /** `key`, which is not in the table, gets this slot. It is not to be among the free ones: `setFree` says which these are. */
  place(slot: number): void {
    this.#keys.set(this.key, slot * this.#words);
    this.#live[slot] = 1;
    const bucket = this.#bucketOf(this.key, 0);
    this.#next[slot] = int32At(this.#heads, bucket);
    this.#heads[bucket] = slot;
  }

  setFree(slots: Int32Array): void {
    this.#free.set(slots);
    this.#freeFrom = 0;
    this.#freeCount = slots.length;
  }

  /** Nothing where the slot is free already. */
  delete(slot: number): void {
    if (this.#live[slot] !== 1) return;
    this.#live[slot] = 0;
    const bucket = this.#bucketOf(this.#keys, slot * this.#words);
    const next = int32At(this.#next, slot);
    let before = int32At(this.#heads, bucket);
    if (before === slot) this.#heads[bucket] = next;
    else {
      while (this.#next[before] !== slot) before = int32At(this.#next, before);
      this.#next[before] = next;
    }
    this.#free[(this.#freeFrom + this.#freeCount) % this.#slots] = slot;
    this.#freeCount++;
  }

  #holds(slot: number): boolean {
    const at = slot * this.#words;
    for (let index = 0; index < this.#words; index++)
      if (this.#keys[at + index] !== this.key[index]) return false;
    return true;
  }

  #bucketOf(words: Int32Array, at: number): number {
    let hash = this.#seed;
    for (let index = 0; index < this.#words; index++) {
      hash = Math.imul(hash ^ int32At(words, at + index), GOLDEN);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, GOLDEN);
    return (hash ^ (hash >>> 13)) & (this.#heads.length - 1);
  }
}
