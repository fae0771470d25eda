import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { itemAt } from "#lib/at.ts";

/** Who wants to know when the thread has done as it was told. Never throws. */
export interface CommandObserver {
  /** `told` is what `Commands.tell` answered. */
  onExecuted(told: number): void;
}

interface Waiting {
  readonly teller: CommandObserver;
  readonly told: number;
}

/** How often it is looked where the thread has no other news. */
const LOOK_MS = 2;
/** Those who have been told already are let go of together. */
const MOST_PAST = 256;

/** What the main thread tells one relay thread, and how far that one has got with it. */
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
  #told = 0;
  /** In the order of the commands, from `#nextWaiting` on; each waits for one of those under way. */
  readonly #waiting: Waiting[] = [];
  #nextWaiting = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(table: RelayMemory, calls: RelayCalls) {
    this.#table = table;
    this.#calls = calls;
  }

  /**
   * A sleeping thread is woken once a turn of the event loop, behind what else the turn brings: to wake it for each
   * connection of a burst would cost more than the connections' own calls. Answers how many it has been told up to now.
   */
  post(slot: number, command: number, teller: CommandObserver | null): number {
    const isAsleep = this.#table.command(slot, command);
    this.#told++;
    if (teller !== null) {
      this.#waiting.push({ teller, told: this.#told });
      this.#lookLater();
    }
    if (isAsleep && !this.#waking) {
      this.#waking = true;
      setImmediate(this.#wake);
    }
    return this.#told;
  }

  /** For a command that can wait until the thread has something else to do. */
  postLazily(slot: number, command: number): void {
    this.#told++;
    this.#table.commandLazily(slot, command);
  }

  /** Tells those whose commands the thread has obeyed. */
  look(): void {
    if (this.#nextWaiting === this.#waiting.length) return;
    const obeyed = this.#told - this.#table.commandsLeft;
    for (; this.#nextWaiting < this.#waiting.length; this.#nextWaiting++) {
      const { teller, told } = itemAt(this.#waiting, this.#nextWaiting);
      if (told > obeyed) break;
      teller.onExecuted(told);
    }
    if (this.#nextWaiting < this.#waiting.length && this.#nextWaiting < MOST_PAST) return;
    this.#waiting.splice(0, this.#nextWaiting);
    this.#nextWaiting = 0;
  }

  #lookLater(): void {
    if (this.#nextWaiting < this.#waiting.length) this.#timer ??= setTimeout(this.#onTime, LOOK_MS).unref();
  }

  /** Nothing more is obeyed: everybody hears that the conversation has ended. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = this.#nextWaiting = 0;
  }
}
