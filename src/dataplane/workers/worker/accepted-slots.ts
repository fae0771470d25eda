import { CAPACITY, FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";

/** The slots that one worker gives out: to clients that it accepts, and to sockets of its own. */
export class AcceptedSlots {
  readonly #table: RelayMemory;
  readonly #free: number[] = [];
  /** Of these the kernel's present batch of events may still have some. */
  readonly #freed: number[] = [];

  constructor(table: RelayMemory) {
    this.#table = table;
  }

  get hasRoom(): boolean {
    return this.#free.length > 0 || FIRST_ACCEPTED_SLOT + this.#table.acceptedSlots < CAPACITY;
  }

  /** Its row is empty. Only where there is room. */
  take(): number {
    const slot = this.#free.pop() ?? FIRST_ACCEPTED_SLOT + this.#table.acceptedSlots++;
    const { descriptors, halfClosed, counts, kinds, messageStates: messages } = this.#table;
    descriptors[slot * 2] = descriptors[slot * 2 + 1] = -1;
    halfClosed[slot] = 0;
    counts[slot * 2] = counts[slot * 2 + 1] = 0;
    kinds[slot * 2] = kinds[slot * 2 + 1] = 0;
    messages[slot * 2] = messages[slot * 2 + 1] = 0;
    return slot;
  }

  /** It is given out again in the next turn at the earliest. */
  free(slot: number): void {
    this.#freed.push(slot);
  }

  /** Once a turn, behind all events. */
  endTurn(): void {
    while (this.#freed.length > 0) this.#free.push(this.#freed.pop() as number);
  }
}
