/** The turns of a worker's tasks: when the kernel has events, when there is more to do than one turn allows, and at a time. */
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { CLIENT, REMOTE, type Side } from "#dataplane/workers/shared/sides.ts";
import type { Alarms } from "./alarms.ts";
import { BACK, FAILED, MORE, WAITS, type Outcome, type Task, type TaskIo } from "./task.ts";
import type { TaskSlots } from "./task-slots.ts";

export interface TurnsEnv {
  readonly table: RelayMemory;
  readonly io: TaskIo;
  readonly tasks: TaskSlots;
  readonly alarms: Alarms;
  /** A fault of ours, which costs the connection in which it happened. */
  readonly onFault: (fault: unknown) => void;
}

function sideOf(index: number): Side {
  return (index & 1) === CLIENT ? CLIENT : REMOTE;
}

export class Turns {
  readonly #table: RelayMemory;
  readonly #io: TaskIo;
  readonly #tasks: TaskSlots;
  readonly #alarms: Alarms;
  readonly #onFault: (fault: unknown) => void;
  /** Slots of tasks with more to do than one turn allows. */
  #queue: number[] = [];

  constructor({ table, io, tasks, alarms, onFault }: TurnsEnv) {
    this.#table = table;
    this.#io = io;
    this.#tasks = tasks;
    this.#alarms = alarms;
    this.#onFault = onFault;
  }

  /** No task waits for its next turn. */
  get isIdle(): boolean {
    return this.#queue.length === 0;
  }

  /** The kernel's events of a descriptor, epoll(7) bits; `index` is that of the descriptor in the table. */
  onEvents(index: number, events: number): void {
    const slot = index >>> 1;
    const task = this.#tasks.get(slot); // it may have ended earlier in this batch
    if (task === null) return;
    const hasNewEvents = task.onEvents(sideOf(index), events);
    if (hasNewEvents && !task.queued) this.take(slot, task);
  }

  /** The same of a wire without a socket, at any time: its task has its turn with those that are queued. */
  enqueue(index: number, events: number): void {
    const slot = index >>> 1;
    const task = this.#tasks.get(slot);
    if (task === null || !task.onEvents(sideOf(index), events) || task.queued) return;
    this.#enqueue(slot, task);
  }

  #enqueue(slot: number, task: Task): void {
    task.queued = true;
    this.#queue.push(slot);
  }

  /** One turn for the task of the slot, which is not queued. */
  take(slot: number, task: Task): void {
    const outcome = this.#run(task);
    const present = this.#tasks.get(slot) ?? task; // it may have become another one
    if (present.halfClosed) this.#table.halfClosed[slot] = 1;
    this.#alarms.take(slot, this.#io);
    if (outcome === WAITS) return;
    if (outcome === BACK) return this.#tasks.giveBack(slot);
    if (outcome !== MORE) return this.#tasks.end(slot, outcome === FAILED);
    this.#enqueue(slot, present);
  }

  #run(task: Task): Outcome {
    try {
      return task.run(this.#io);
    } catch (fault) {
      this.#onFault(fault);
      return FAILED;
    }
  }

  /** Once a turn of the loop. */
  takeQueued(): void {
    if (this.#queue.length === 0) return;
    const queue = this.#queue;
    this.#queue = [];
    for (const slot of queue) {
      const task = this.#tasks.get(slot);
      if (task === null || !task.queued) continue;
      task.queued = false;
      this.take(slot, task);
    }
  }

  /** The time has come at which a wire of the slot's task has wanted a turn. */
  wake(slot: number): void {
    const task = this.#tasks.get(slot);
    if (task !== null && !task.queued) this.take(slot, task);
  }
}
