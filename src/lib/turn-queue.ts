/**
 * Work that comes in floods, begun in portions: so many items in one turn of the event loop, so that whatever else is due has
 * its turn between them. What is urgent goes before what is not, and the newest before what is older: under load the askers
 * of the oldest have given up. It has no bound of its own: its owner counts what waits.
 */
export class TurnQueue<Item> {
  readonly #perTurn: number;
  readonly #begin: (item: Item) => void;
  readonly #urgent: Item[] = [];
  readonly #others: Item[] = [];
  /** In this turn. */
  #begun = 0;
  #isTurnAwaited = false;

  /** `begin` must not throw. */
  constructor(perTurn: number, begin: (item: Item) => void) {
    this.#perTurn = perTurn;
    this.#begin = begin;
  }

  /** Begins at once while the turn has room. */
  push(item: Item, isUrgent: boolean): void {
    if (this.#begun >= this.#perTurn) return void (isUrgent ? this.#urgent : this.#others).push(item);
    this.#beginOne(item);
  }

  #beginOne(item: Item): void {
    this.#begun++;
    if (!this.#isTurnAwaited) {
      this.#isTurnAwaited = true;
      setImmediate(this.#onTurn);
    }
    this.#begin(item);
  }

  readonly #onTurn = (): void => {
    this.#isTurnAwaited = false;
    this.#begun = 0;
    while (this.#begun < this.#perTurn) {
      const item = this.#urgent.pop() ?? this.#others.pop();
      if (item === undefined) return;
      this.#beginOne(item);
    }
  };
}
