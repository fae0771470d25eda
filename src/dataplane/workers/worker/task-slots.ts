/** The slots of one worker: each has a task, two descriptors, and what the wires over them hold; all of it ends here. */
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { ENDED } from "#dataplane/workers/shared/opcodes.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import { Slots } from "#dataplane/workers/shared/slots.ts";
import { LEFT_OPEN } from "#dataplane/workers/shared/wire-spec.ts";
import type { Wires } from "#dataplane/workers/wire/open-wire.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { int32At } from "#lib/at.ts";
import type { Alarms } from "./alarms.ts";
import type { EventReporter } from "./event-reporter.ts";
import { PendingConnection } from "./pending-connection.ts";
import type { WireMessages } from "./pending-task.ts";
import { RelayTask } from "./relay-task.ts";
import type { Task, TaskIo } from "./task.ts";

export interface TaskSlotsEnv {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly wires: Wires;
  readonly io: TaskIo;
  readonly alarms: Alarms;
  readonly events: EventReporter;
  /** Nothing of the slot is open any more. False: the main thread does not know of it, and is not told. */
  readonly onClosed: (slot: number) => boolean;
  /** Of tests only. */
  readonly atSeam: AtSeam | undefined;
}

export class TaskSlots {
  readonly #env: TaskSlotsEnv;
  readonly #table: RelayMemory;
  readonly #tasks = new Slots<Task>();

  constructor(env: TaskSlotsEnv) {
    this.#env = env;
    this.#table = env.table;
  }

  get(slot: number): Task | null {
    return this.#tasks.get(slot);
  }

  /** Another task in the slot, or none. */
  set(slot: number, task: Task | null): void {
    this.#tasks.set(slot, task);
  }

  /** All slots that have a task. */
  taken(): Iterable<number> {
    return this.#tasks.taken();
  }

  /** A relay of the slot's two wires, which is not in the slot yet. Null: one of them cannot be had. */
  pair(slot: number, [ofNear, ofFar]: WireMessages): Task | null {
    const { alarms, io, wires } = this.#env;
    const near = wires.open(slot * 2, ofNear);
    const far = wires.open(slot * 2 + 1, ofFar);
    if (near === null || far === null) {
      if (near !== null) this.#drop(slot * 2, near);
      if (far !== null) this.#drop(slot * 2 + 1, far);
      return null;
    }
    const task = new RelayTask(near, far, slot);
    if (this.#table.limited[slot] === 1) task.limit(true);
    near.begin?.(io);
    far.begin?.(io);
    alarms.take(slot, io);
    return task;
  }

  #drop(index: number, wire: Wire): void {
    const { io, wires } = this.#env;
    wires.disown(index);
    wire.drop(io);
  }

  /** A slot that has ended already is left alone: the command crossed the event. */
  end(slot: number, isFault: boolean): void {
    const { alarms, atSeam, io, wires } = this.#env;
    const task = this.#tasks.get(slot);
    if (task === null) return;
    this.#tasks.set(slot, null);
    alarms.clear(slot);
    // What the wires of a client are to hold that is not connected yet is the main thread's to free.
    if (!(task instanceof PendingConnection)) {
      wires.disown(slot * 2);
      wires.disown(slot * 2 + 1);
    }
    atSeam?.("freeing");
    task.drop(io);
    this.close(slot, isFault);
  }

  /** Both sockets stay open, and are the main thread's. */
  giveBack(slot: number): void {
    const { kinds } = this.#table;
    kinds[slot * 2] = kinds[slot * 2 + 1] = LEFT_OPEN;
    this.end(slot, false);
  }

  /** Closes the descriptors of a slot without a task, and reports its end. */
  close(slot: number, isFault: boolean): void {
    this.#release(slot * 2, isFault);
    this.#release(slot * 2 + 1, isFault);
    if (this.#env.onClosed(slot)) this.#reportEnd(slot);
  }

  /** Only a socket that was left open is waited for. */
  #reportEnd(slot: number): void {
    const { kinds } = this.#table;
    const { events } = this.#env;
    if (kinds[slot * 2] === LEFT_OPEN || kinds[slot * 2 + 1] === LEFT_OPEN) events.report(slot, ENDED);
    else events.reportLazily(slot, ENDED);
  }

  #release(index: number, isFault: boolean): void {
    const { atSeam, calls } = this.#env;
    const { descriptors, epoll, kinds } = this.#table;
    const fd = int32At(descriptors, index);
    if (fd < 0) return;
    if (kinds[index] === LEFT_OPEN) return calls.unwatch(epoll, fd);
    // First: its name must not be asked for any more, nor the number closed, which may be another's, should this worker
    // die.
    Atomics.store(descriptors, index, -1);
    atSeam?.("closing");
    if (isFault) calls.reset(fd);
    else calls.close(fd);
  }
}
