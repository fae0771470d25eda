/**
 * Names by number, in shared memory: one thread writes, any thread reads without a lock. What is not found may have a name all
 * the same: there is one place for all numbers that end alike, and no name is kept that is long or not ASCII.
 */
import { MOST_NAME_BYTES } from "./name-table.ts";
import { int32At } from "./at.ts";

const SLOTS = 1 << 14;
// Header: EPOCH(1); the rest is free.
const HEADER_WORDS = 16;
// Slot: SEQUENCE(1) EPOCH(1) NUMBER(2) LENGTH(1) NAME(32)
const EPOCH = 1;
const NUMBER = 2;
const LENGTH = 4;
const NAME = 5;
const NAME_WORDS = (MOST_NAME_BYTES + 1) / 4;
const SLOT_WORDS = NAME + NAME_WORDS;
const UPPER = 2 ** 32;

/** As in a `NameTable`: every word is read and written atomically, and a sequence number is odd while its slot is written. */
export class NumberedNames {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #name = new Int32Array(NAME_WORDS);
  readonly #bytes = Buffer.from(this.#name.buffer);

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer((HEADER_WORDS + SLOTS * SLOT_WORDS) * 4)) {
    this.memory = memory;
    this.#words = new Int32Array(memory);
  }

  /** `number` is an integer of at most 53 bits. Of one thread only, as the others that change anything. */
  put(number: number, name: string): void {
    if (name.length > MOST_NAME_BYTES || !isAscii(name)) return this.remove(number);
    const at = placeOf(number);
    this.#bytes.fill(0);
    this.#bytes.write(name, "latin1");
    const sequence = this.#at(at);
    this.#set(at, sequence | 1);
    this.#set(at + EPOCH, this.#at(0));
    this.#set(at + NUMBER, Math.floor(number / UPPER));
    this.#set(at + NUMBER + 1, number | 0);
    this.#set(at + LENGTH, name.length);
    for (let word = 0; word * 4 < name.length; word++) this.#set(at + NAME + word, int32At(this.#name, word));
    this.#set(at, ((sequence | 1) + 1) | 0);
  }

  /** It has no name any more. */
  remove(number: number): void {
    const at = placeOf(number);
    if (!this.#has(at, number)) return;
    const sequence = this.#at(at);
    this.#set(at, sequence | 1);
    this.#set(at + LENGTH, 0);
    this.#set(at, ((sequence | 1) + 1) | 0);
  }

  /** None has one. */
  clear(): void {
    Atomics.add(this.#words, 0, 1);
  }

  /** Null: it has none, or that is not known here. */
  find(number: number): string | null {
    const at = placeOf(number);
    const sequence = this.#at(at);
    if ((sequence & 1) !== 0 || !this.#has(at, number)) return null;
    const length = this.#at(at + LENGTH);
    for (let word = 0; word * 4 < length; word++) this.#name[word] = this.#at(at + NAME + word);
    return this.#at(at) === sequence ? this.#bytes.toString("latin1", 0, length) : null;
  }

  #has(at: number, number: number): boolean {
    if (this.#at(at + LENGTH) === 0 || this.#at(at + EPOCH) !== this.#at(0)) return false;
    return this.#at(at + NUMBER) === Math.floor(number / UPPER) && this.#at(at + NUMBER + 1) === (number | 0);
  }

  #at(word: number): number {
    return Atomics.load(this.#words, word);
  }

  #set(word: number, value: number): void {
    Atomics.store(this.#words, word, value);
  }
}

function placeOf(number: number): number {
  return HEADER_WORDS + (number & (SLOTS - 1)) * SLOT_WORDS;
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
}
