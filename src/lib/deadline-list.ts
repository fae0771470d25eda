/** What stands in a line: in one at a time. */
export interface DeadlineListItem<T extends DeadlineListItem<T>> {
  line: DeadlineList<T> | null;
  before: T | null;
  behind: T | null;
}

/** In order of arrival. Who comes and goes makes no garbage, unlike with a `Set`. */
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

  /** Of one that stands in none. */
  join(one: T): void {
    one.line = this;
    one.before = this.#last;
    one.behind = null;
    if (this.#last === null) this.#first = one;
    else this.#last.behind = one;
    this.#last = one;
    this.#size++;
  }

  /** Nothing happens to one that does not stand here. */
  leave(one: T): void {
    if (one.line !== this) return;
    if (one.before === null) this.#first = one.behind;
    else one.before.behind = one.behind;
    if (one.behind === null) this.#last = one.before;
    else one.behind.before = one.before;
    one.line = one.before = one.behind = null;
    this.#size--;
  }

  /** `on` may take the one that it is told of out of the line, and no other. */
  forEach(on: (one: T) => void): void {
    for (let one = this.#first; one !== null;) {
      const next: T | null = one.behind;
      on(one);
      one = next;
    }
  }
}
