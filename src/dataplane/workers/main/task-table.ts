import { CAPACITY, FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { Slots } from "#dataplane/workers/shared/slots.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";

/** The connections of one worker as the main thread knows them: the owner of each slot's task, and how many there are. */
export class TaskTable {
  /**
   * By index: the part of its count that the connection's owner has been told. Numbers in objects would take three
   * times the memory.
   */
  readonly reported = new Float64Array(CAPACITY * 2);
  readonly #table: RelayMemory;
  readonly #onChange: (change: 1 | -1) => void;
  readonly #owners = new Slots<WorkerTaskOwner>();
  #next = 0;
  readonly #free: number[] = [];
  #size = 0;
  #accepted = 0;

  /** `onChange` is called for each connection that comes (1) or leaves (-1). */
  constructor(table: RelayMemory, onChange: (change: 1 | -1) => void) {
    this.#table = table;
    this.#onChange = onChange;
  }

  /** Number of connections. */
  get size(): number {
    return this.#size;
  }

  /** For one more that the main thread hands over. */
  get hasRoom(): boolean {
    return this.#size - this.#accepted < FIRST_ACCEPTED_SLOT;
  }

  get(slot: number): WorkerTaskOwner | null {
    return this.#owners.get(slot);
  }

  /** Nothing is made for each of them. */
  forEach(on: (owner: WorkerTaskOwner) => void): void {
    this.#owners.forEach(on);
  }

  /** All slots that have an owner. */
  taken(): Iterable<number> {
    return this.#owners.taken();
  }

  /** A slot for a connection that the main thread hands over. Only where there is room. */
  takeSlot(): number {
    return this.#free.pop() ?? this.#next++;
  }

  /** For a slot of `takeSlot`, once nothing on this side uses it any more. */
  freeSlot(slot: number): void {
    this.#free.push(slot);
  }

  /** Null: a client that the worker has accepted, and that has no observer. */
  enter(slot: number, owner: WorkerTaskOwner | null): void {
    this.#owners.set(slot, owner);
    this.#size++;
    if (slot >= FIRST_ACCEPTED_SLOT) this.#accepted++;
    this.#onChange(1);
  }

  /** The task's events go to another owner. */
  handOver(slot: number, owner: WorkerTaskOwner): void {
    this.#owners.set(slot, owner);
  }

  /** The slot's next client is unlimited unless it is set otherwise: one that the worker decides is free. */
  leave(slot: number): void {
    this.#owners.set(slot, null);
    this.#table.limited[slot] = 0;
    this.#size--;
    if (slot >= FIRST_ACCEPTED_SLOT) this.#accepted--;
    this.#onChange(-1);
  }
}
