import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { itemAt } from "#lib/at.ts";

/** Notified when the worker has executed a command. Never throws. */
export interface CommandObserver {
  /** `posted` is the number that `Commands.post` returned. */
  onExecuted(posted: number): void;
}

interface Waiting {
  readonly observer: CommandObserver;
  readonly posted: number;
}

/** How often progress is checked when the worker sends no events. */
const LOOK_MS = 2;
/** Entries that were notified are removed together. */
const MOST_PAST = 256;

/** The commands to one worker, and how far it has executed them. */
export class Commands {
  readonly #table: RelayMemory;
  readonly #calls: RelayCalls;
  readonly #wake = (): void => {
    this.#waking = false;
    if (this.#table.signal >= 0) this.#calls.raiseSignal(this.#table.signal);
  };
  readonly #onTime = (): void => {
    this.#timer = undefined;
    this.look();
    this.#lookLater();
  };
  #waking = false;
  #posted = 0;
  /** In the order of the commands, from `#nextWaiting` on; each waits for one of those under way. */
  readonly #waiting: Waiting[] = [];
  #nextWaiting = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(table: RelayMemory, calls: RelayCalls) {
    this.#table = table;
    this.#calls = calls;
  }

  /**
   * A sleeping worker is woken once a turn of the event loop, at its end: waking it for each connection of a burst
   * would cost more than the connections' own calls. Returns the number of commands up to now.
   */
  post(slot: number, command: number, observer: CommandObserver | null): number {
    const isAsleep = this.#table.command(slot, command);
    this.#posted++;
    if (observer !== null) {
      this.#waiting.push({ observer, posted: this.#posted });
      this.#lookLater();
    }
    if (isAsleep && !this.#waking) {
      this.#waking = true;
      setImmediate(this.#wake);
    }
    return this.#posted;
  }

  /** For a command that can wait until the thread has something else to do. */
  postLazily(slot: number, command: number): void {
    this.#posted++;
    this.#table.commandLazily(slot, command);
  }

  /** Notifies the observers of executed commands. */
  look(): void {
    if (this.#nextWaiting === this.#waiting.length) return;
    const obeyed = this.#posted - this.#table.commandsLeft;
    for (; this.#nextWaiting < this.#waiting.length; this.#nextWaiting++) {
      const { observer, posted } = itemAt(this.#waiting, this.#nextWaiting);
      if (posted > obeyed) break;
      observer.onExecuted(posted);
    }
    if (this.#nextWaiting < this.#waiting.length && this.#nextWaiting < MOST_PAST) return;
    this.#waiting.splice(0, this.#nextWaiting);
    this.#nextWaiting = 0;
  }

  #lookLater(): void {
    if (this.#nextWaiting < this.#waiting.length) this.#timer ??= setTimeout(this.#onTime, LOOK_MS).unref();
  }

  /** No further command will be executed: every observer is told that the connection has ended. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = this.#nextWaiting = 0;
  }
}
