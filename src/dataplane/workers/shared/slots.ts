import { FIRST_ACCEPTED_SLOT } from "./relay-memory.ts";

/** What is known by slot: two dense lists, for slots are given out by both threads, each from its own beginning. */
export class Slots<T> {
  readonly #carried: (T | null)[] = [];
  readonly #accepted: (T | null)[] = [];

  get(slot: number): T | null {
    return (
      (slot < FIRST_ACCEPTED_SLOT ? this.#carried[slot] : this.#accepted[slot - FIRST_ACCEPTED_SLOT]) ?? null
    );
  }

  set(slot: number, one: T | null): void {
    if (slot < FIRST_ACCEPTED_SLOT) this.#carried[slot] = one;
    else this.#accepted[slot - FIRST_ACCEPTED_SLOT] = one;
  }

  /** As `taken`, with nothing made for each of them. What comes meanwhile may be seen or not. */
  forEach(on: (one: T) => void): void {
    for (const slots of [this.#carried, this.#accepted])
      for (let at = 0; at < slots.length; at++) {
        const one = slots[at] ?? null;
        if (one !== null) on(one);
      }
  }

  /** All slots that are in use. */
  *taken(): Generator<number> {
    for (const [at, one] of this.#carried.entries()) if (one) yield at;
    for (const [at, one] of this.#accepted.entries()) if (one) yield FIRST_ACCEPTED_SLOT + at;
  }
}
