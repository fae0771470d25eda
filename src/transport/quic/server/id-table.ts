/** Finds what belongs to a connection id. Clients choose some of the ids, and cannot choose which of them fall together. */
import { byteAt } from "#lib/at.ts";
import { KeyedHash } from "#lib/keyed-hash.ts";

interface Entry<Value> {
  readonly id: Uint8Array;
  readonly value: Value;
  /** Another one with the same hash. */
  next: Entry<Value> | null;
}

export class IdTable<Value extends object> {
  readonly #hash: KeyedHash;
  readonly #entries = new Map<number, Entry<Value>>();
  #size = 0;

  /** `key`: 8 random bytes. */
  constructor(key: Uint8Array) {
    this.#hash = new KeyedHash(key);
  }

  get size(): number {
    return this.#size;
  }

  /** Of the id that begins at `at`; null: it is not known. Allocates nothing. */
  find(bytes: Uint8Array, at = 0, length = bytes.length): Value | null {
    const place = this.#hash.of(bytes, at, length);
    for (let entry = this.#entries.get(place) ?? null; entry !== null; entry = entry.next)
      if (isSame(entry.id, bytes, at, length)) return entry.value;
    return null;
  }

  /** Keeps the id. One that is known already stays what it is. */
  add(id: Uint8Array, value: Value): void {
    if (this.find(id) !== null) return;
    const place = this.#hash.of(id, 0, id.length);
    this.#entries.set(place, { id, value, next: this.#entries.get(place) ?? null });
    this.#size++;
  }

  /** Nothing where it is not the id of this value. */
  remove(id: Uint8Array, value: Value): void {
    const place = this.#hash.of(id, 0, id.length);
    let before: Entry<Value> | null = null;
    for (let entry = this.#entries.get(place) ?? null; entry !== null; before = entry, entry = entry.next) {
      if (entry.value !== value || !isSame(entry.id, id, 0, id.length)) continue;
      if (before !== null) before.next = entry.next;
      else if (entry.next !== null) this.#entries.set(place, entry.next);
      else this.#entries.delete(place);
      this.#size--;
      return;
    }
  }
}

function isSame(id: Uint8Array, bytes: Uint8Array, at: number, length: number): boolean {
  if (id.length !== length) return false;
  for (let index = 0; index < length; index++)
    if (byteAt(id, index) !== byteAt(bytes, at + index)) return false;
  return true;
}
