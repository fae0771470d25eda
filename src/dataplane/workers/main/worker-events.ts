import { FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import {
  DIALLED,
  ENDED,
  GRANT_WANTED,
  NOT_DIALLED,
  REQUESTED,
  SERVED,
  UNLISTENED,
} from "#dataplane/workers/shared/opcodes.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import { float64At } from "#lib/at.ts";
import { type Free, freeOrphans } from "./orphans.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";
import type { TaskTable } from "./task-table.ts";

export interface WorkerEventsEnv {
  readonly table: RelayMemory;
  readonly tasks: TaskTable;
  /** Frees what a wire holds besides its socket, where no worker does. */
  readonly free: Free;
  /** Gives a slot of the worker back to it: the last that is done with the slot. */
  readonly release: (slot: number) => void;
  /** A client that the worker has accepted wants something. */
  readonly onArrived: (slot: number, kind: number) => void;
  /** A client that the worker has decided has come and gone. The slot is still to be released. */
  readonly onServed: (slot: number) => void;
  /** That listener accepts no client any more. */
  readonly onUnlistened: (listener: number) => void;
  /** Of the main thread. */
  readonly atSeam: AtSeam | undefined;
}

/** The events of one worker: each goes to the owner of its slot. */
export class WorkerEvents {
  readonly #env: WorkerEventsEnv;
  readonly #table: RelayMemory;
  readonly #tasks: TaskTable;

  constructor(env: WorkerEventsEnv) {
    this.#env = env;
    this.#table = env.table;
    this.#tasks = env.tasks;
  }

  /**
   * Those up to now, or until `goesOn` is false: then it answers false, as `RelayMemory.takeEvents` says. A fault of ours in one
   * connection is thrown elsewhere, and costs no other its events.
   */
  takeAll(goesOn?: () => boolean): boolean {
    const on = (slot: number, kind: number): void => {
      try {
        this.#take(slot, kind);
      } catch (error) {
        setImmediate(() => {
          throw error;
        });
      }
    };
    return this.#table.takeEvents(on, goesOn);
  }

  #take(slot: number, kind: number): void {
    this.#env.atSeam?.("read");
    if (kind === ENDED) this.end(slot);
    else if (kind < REQUESTED)
      this.#tasks.get(slot)?.onGrantRequest(kind === GRANT_WANTED ? "upload" : "download");
    else this.#onEvent(slot, kind);
  }

  #onEvent(slot: number, kind: number): void {
    if (kind === UNLISTENED) this.#env.onUnlistened(slot);
    else if (kind === SERVED) this.#onServed(slot);
    else if (kind === DIALLED) this.#tasks.get(slot)?.onDialled?.(null);
    else if (kind === NOT_DIALLED) this.#tasks.get(slot)?.onDialled?.(float64At(this.#table.asked, slot * 2));
    else this.#env.onArrived(slot, kind);
  }

  #onServed(slot: number): void {
    try {
      this.#env.onServed(slot);
    } finally {
      this.#env.release(slot);
    }
  }

  /**
   * What was in the slot has ended. The slot is given back last, whatever happens here: until then its counts, descriptors and
   * objects are those of the one that has ended.
   */
  end(slot: number): void {
    const owner = this.#tasks.get(slot);
    try {
      if (owner !== null) this.#settle(slot, owner); // else a client that was never reported
    } finally {
      if (slot < FIRST_ACCEPTED_SLOT) this.#tasks.freeSlot(slot);
      else this.#env.release(slot);
    }
  }

  #settle(slot: number, owner: WorkerTaskOwner): void {
    this.#tasks.leave(slot);
    freeOrphans(this.#table, slot, this.#env.free);
    owner.onEnded();
  }
}
