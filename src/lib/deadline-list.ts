/** An item of a deadline list; it is in one list at a time. */
export interface DeadlineListItem<T extends DeadlineListItem<T>> {
  line: DeadlineList<T> | null;
  before: T | null;
  behind: T | null;
}

/** Items in order of arrival. Joining and leaving allocates nothing, unlike with a `Set`. */
export class DeadlineList<T extends DeadlineListItem<T>> {
  #first: T | null = null;
  #last: T | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | null {
    return this.#first;
  }

  /** The item must not be in a list. */
  join(one: T): void {
    one.line = this;
    one.before = this.#last;
    one.behind = null;
    if (this.#last === null) this.#first = one;
    else this.#last.behind = one;
    this.#last = one;
    this.#size++;
  }

  /** Does nothing when the item is not in this list. */
  leave(one: T): void {
    if (one.line !== this) return;
    if (one.before === null) this.#first = one.behind;
    else one.before.behind = one.behind;
    if (one.behind === null) this.#last = one.before;
    else one.behind.before = one.before;
    one.line = one.before = one.behind = null;
    this.#size--;
  }

  /** `on` may remove the item that it was called with, and no other. */
  forEach(on: (one: T) => void): void {
    for (let one = this.#first; one !== null;) {
      const next: T | null = one.behind;
      on(one);
      one = next;
    }
  }
}
