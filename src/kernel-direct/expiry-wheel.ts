import { valueAt } from "#lib/at.ts";
/** What is to be forgotten, by the second: setting and moving a date costs the same however much is kept. */
export interface Expiring {
  /** Set by the wheel. */
  expiresAtMs: number;
}

const SLOT_MS = 1000;

export class ExpiryWheel<T extends Expiring> {
  readonly #slots = new Map<number, Set<T>>();
  /** Slots before it are empty. */
  #next: number | null = null;

  set(item: T, expiresAtMs: number): void {
    this.remove(item);
    item.expiresAtMs = expiresAtMs;
    const at = slotOf(expiresAtMs);
    const slot = this.#slots.get(at);
    if (slot === undefined) this.#slots.set(at, new Set([item]));
    else slot.add(item);
    this.#next = Math.min(this.#next ?? at, at);
  }

  remove(item: T): void {
    const at = slotOf(item.expiresAtMs);
    const slot = this.#slots.get(at);
    if (slot === undefined || !slot.delete(item)) return;
    if (slot.size === 0) this.#slots.delete(at);
  }

  /** Takes out what expired up to a second ago or longer, the earliest second first. */
  take(nowMs: number): readonly T[] {
    const due: T[] = [];
    const last = Math.floor(nowMs / SLOT_MS);
    if (this.#slots.size === 0) this.#next = null;
    if (this.#next === null || this.#next > last) return due;
    // A process that slept for hours looks at what is there, not at every second that passed.
    const slots = [...this.#slots.keys()].filter((at) => at <= last).sort((a, b) => a - b);
    for (const at of slots) {
      for (const item of valueAt(this.#slots, at)) due.push(item); // too many for arguments of a call
      this.#slots.delete(at);
    }
    this.#next = last + 1;
    return due;
  }

  clear(): void {
    this.#slots.clear();
    this.#next = null;
  }
}

/** The first second at whose start the date has passed. */
function slotOf(expiresAtMs: number): number {
  return Math.ceil(expiresAtMs / SLOT_MS);
}
