import { float64At, int32At } from "#lib/at.ts";

/** Slots of a table in the order of their last use, in memory that is made once: each call costs the same, however many there are. */
const NONE = -1;

/** A slot is in it at most once. */
export class IdleList {
  readonly #usedAtMs: Float64Array;
  /** Doubly linked. */
  readonly #before: Int32Array;
  readonly #behind: Int32Array;
  #head = NONE;
  #tail = NONE;

  constructor(slots: number) {
    this.#usedAtMs = new Float64Array(slots);
    this.#before = new Int32Array(slots).fill(NONE);
    this.#behind = new Int32Array(slots).fill(NONE);
  }

  /** The slot that has been idle longest; -1: none. */
  get head(): number {
    return this.#head;
  }

  /** Has its head rested for so long? */
  hasRested(ms: number, nowMs: number): boolean {
    return this.#head !== NONE && nowMs - float64At(this.#usedAtMs, this.#head) >= ms;
  }

  /** One that is not in the line, used now. */
  append(slot: number, nowMs: number): void {
    this.#usedAtMs[slot] = nowMs;
    this.#before[slot] = this.#tail;
    this.#behind[slot] = NONE;
    if (this.#tail === NONE) this.#head = slot;
    else this.#behind[this.#tail] = slot;
    this.#tail = slot;
  }

  /** One that is in the line is used. */
  touch(slot: number, nowMs: number): void {
    if (this.#usedAtMs[slot] === nowMs) return;
    this.remove(slot);
    this.append(slot, nowMs);
  }

  /** One that is in the line. */
  remove(slot: number): void {
    const before = int32At(this.#before, slot);
    const behind = int32At(this.#behind, slot);
    if (before === NONE) this.#head = behind;
    else this.#behind[before] = behind;
    if (behind === NONE) this.#tail = before;
    else this.#before[behind] = before;
  }
}
