/**
 * A few numbers for each of many names, in shared memory: one thread writes, any thread reads without a lock. An entry is
 * given until its end, and not at all while it is written anew: what is not found may be known all the same.
 */
import { int32At } from "./at.ts";

/** In text form, one byte a character. */
export const MOST_NAME_BYTES = 127;
export const NAME_VALUES = 6;

/** Entries that one hash value leads to; of these the one that ends first gives way to a new one. */
const WAYS = 8;
const SETS = 1024;
// Header: EPOCH(1) LIMIT_SECONDS(1) LIMIT_SPAN_MS(1); the rest is free.
const HEADER_WORDS = 16;
const LIMIT = 1;
const SPAN = 2;
// Entry: SEQUENCE(1) EPOCH(1) KIND(1) LENGTH(1) HASH(1) END_MS(2) LIFETIME_MS(1) VALUES(6) NAME(32)
const EPOCH = 1;
const KIND = 2;
const LENGTH = 3;
const HASH = 4;
const END = 5;
const LIFETIME = 7;
const VALUES = 8;
const NAME = VALUES + NAME_VALUES;
const NAME_WORDS = (MOST_NAME_BYTES + 1) / 4;
const ENTRY_WORDS = NAME + NAME_WORDS;
const TABLE_BYTES = (HEADER_WORDS + SETS * WAYS * ENTRY_WORDS) * 4;
const UPPER = 2 ** 32;
/** A reload needs one; more are left behind by several in a row only, and go. */
const MOST_FREE = 2;
/** No entry lasts longer. */
const MOST_LIFETIME_MS = 7 * 86_400_000;

/** Tables for one user after the other. Memory as large as theirs is given back to the system late, and in pieces. */
export class NameTables {
  readonly #free: NameTable[] = [];

  /** An empty one. */
  take(): NameTable {
    return this.#free.pop() ?? new NameTable();
  }

  /** No thread reads it any more, or writes to it. */
  giveBack(table: NameTable): void {
    table.clear();
    table.limit(0, 0);
    if (this.#free.length < MOST_FREE) this.#free.push(table);
  }
}

/**
 * Every word is read and written atomically, so that all threads see all accesses in one order: two equal even sequence
 * numbers mean that nothing was written between them.
 */
export class NameTable {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #name = new Int32Array(NAME_WORDS);
  #hash = 0;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(TABLE_BYTES)) {
    this.memory = memory;
    this.#words = new Int32Array(memory);
  }

  /** Times in ms of Unix time. A name that is too long, or not ASCII, is left out. Of one thread only. */
  put(kind: number, name: string, values: Int32Array, endMs: number, nowMs: number): void {
    const lifetimeMs = Math.min(Math.ceil(endMs - nowMs), MOST_LIFETIME_MS);
    if (lifetimeMs <= 0 || !this.#take(name)) return;
    const at = this.#placeFor(kind, name.length, nowMs);
    const sequence = this.#at(at);
    Atomics.store(this.#words, at, sequence | 1);
    this.#set(at + EPOCH, this.#at(0));
    this.#set(at + KIND, kind);
    this.#set(at + LENGTH, name.length);
    this.#set(at + HASH, this.#hash);
    const lastMs = Math.floor(nowMs) + lifetimeMs;
    this.#set(at + END, Math.floor(lastMs / UPPER));
    this.#set(at + END + 1, (lastMs % UPPER) | 0);
    this.#set(at + LIFETIME, lifetimeMs);
    for (let word = 0; word < NAME_VALUES; word++) this.#set(at + VALUES + word, values[word] ?? 0);
    for (let word = 0; word * 4 < name.length; word++) this.#set(at + NAME + word, int32At(this.#name, word));
    Atomics.store(this.#words, at, ((sequence | 1) + 1) | 0);
  }

  /** False: it is not known here, with `values` as it may be. */
  find(kind: number, name: string, values: Int32Array, nowMs: number): boolean {
    if (!this.#take(name)) return false;
    const first = this.#setAt;
    for (let at = first; at < first + WAYS * ENTRY_WORDS; at += ENTRY_WORDS) {
      const sequence = this.#at(at);
      if ((sequence & 1) !== 0 || !this.#is(at, kind, name.length)) continue;
      const isValid = this.#isValid(at, nowMs);
      for (let word = 0; word < NAME_VALUES; word++) values[word] = this.#at(at + VALUES + word);
      return this.#at(at) === sequence && isValid;
    }
    return false;
  }

  /** Nothing that was put before is found any more. */
  clear(): void {
    Atomics.add(this.#words, 0, 1);
  }

  /**
   * Until then, and at most so long before, entries are given; each call takes the place of the one before. Without any they
   * are given until they end.
   */
  limit(untilMs: number, spanMs: number): void {
    this.#set(SPAN, spanMs);
    this.#set(LIMIT, Math.floor(untilMs / 1_000) | 0);
  }

  get #setAt(): number {
    return HEADER_WORDS + (this.#hash & (SETS - 1)) * WAYS * ENTRY_WORDS;
  }

  #placeFor(kind: number, length: number, nowMs: number): number {
    const first = this.#setAt;
    let [place, placeEndMs] = [first, Infinity];
    for (let at = first; at < first + WAYS * ENTRY_WORDS; at += ENTRY_WORDS) {
      if (this.#is(at, kind, length)) return at;
      const endMs = this.#isValid(at, nowMs) ? this.#endMsOf(at) : 0;
      if (endMs < placeEndMs) [place, placeEndMs] = [at, endMs];
    }
    return place;
  }

  #is(at: number, kind: number, length: number): boolean {
    if (this.#at(at + HASH) !== this.#hash || this.#at(at + KIND) !== kind) return false;
    if (this.#at(at + LENGTH) !== length) return false;
    for (let word = 0; word * 4 < length; word++)
      if (this.#at(at + NAME + word) !== int32At(this.#name, word)) return false;
    return true;
  }

  /** More time left than it was given means that the clock was set back: its age is unknown. */
  #isValid(at: number, nowMs: number): boolean {
    const leftMs = this.#endMsOf(at) - nowMs;
    const limitMs = (this.#at(LIMIT) >>> 0) * 1_000;
    if (limitMs > 0 && (limitMs <= nowMs || limitMs - nowMs > this.#at(SPAN))) return false;
    return leftMs > 0 && leftMs <= this.#at(at + LIFETIME) + 1 && this.#at(at + EPOCH) === this.#at(0);
  }

  #endMsOf(at: number): number {
    return this.#at(at + END) * UPPER + (this.#at(at + END + 1) >>> 0);
  }

  /** Packs the name, with zeros behind it, and hashes it (FNV-1a). False: it is no name for this table. */
  #take(name: string): boolean {
    const { length } = name;
    if (length === 0 || length > MOST_NAME_BYTES) return false;
    let hash = 0x811c_9dc5;
    let word = 0;
    for (let at = 0; at < length; at++) {
      const code = name.charCodeAt(at);
      if (code > 0x7f) return false;
      hash = Math.imul(hash ^ code, 0x0100_0193);
      word |= code << ((at & 3) * 8);
      if ((at & 3) !== 3 && at + 1 < length) continue;
      this.#name[at >> 2] = word;
      word = 0;
    }
    this.#hash = hash ^ (hash >>> 15);
    return true;
  }

  #at(word: number): number {
    return Atomics.load(this.#words, word);
  }

  #set(word: number, value: number): void {
    Atomics.store(this.#words, word, value);
  }
}
