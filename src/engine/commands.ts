import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { SharedTable } from "./shared-table.ts";

/** What the main thread tells one relay thread, and how far that one has got with it. */
export class Commands {
  readonly #table: SharedTable;
  readonly #calls: RelayCalls;
  readonly #wake = (): void => {
    this.#waking = false;
    if (this.#table.signal >= 0) this.#calls.raiseSignal(this.#table.signal);
  };
  #waking = false;
  /** Told so far; one that had not been obeyed yet when it was last looked at, and since when. */
  #told = 0;
  #marked = 0;
  #markedAtMs = 0;

  constructor(table: SharedTable, calls: RelayCalls) {
    this.#table = table;
    this.#calls = calls;
  }

  /**
   * A sleeping thread is woken once a turn of the event loop, behind what else the turn brings: to wake it for each
   * connection of a burst would cost more than the connections' own calls.
   */
  tell(slot: number, command: number): void {
    const isAsleep = this.#table.command(slot, command);
    this.#told++;
    if (this.#isMarkPassed) this.#mark();
    if (!isAsleep || this.#waking) return;
    this.#waking = true;
    setImmediate(this.#wake);
  }

  /** For a command that can wait until the thread has something else to do. */
  tellAtLeisure(slot: number, command: number): void {
    this.#told++;
    this.#table.commandAtLeisure(slot, command);
  }

  /** For how long at least a command has been waiting for the thread; 0: it is not behind. */
  get behindMs(): number {
    return this.#isMarkPassed ? 0 : performance.now() - this.#markedAtMs;
  }

  get #isMarkPassed(): boolean {
    return this.#told - this.#table.commandsLeft >= this.#marked;
  }

  #mark(): void {
    this.#marked = this.#told;
    this.#markedAtMs = performance.now();
  }
}
