import type { Pipe, RelayCalls } from "#platform/linux/relay-calls.ts";

/** The pipes of one relay thread: made when first wanted, lent for as long as bytes are in them. */
export class Pipes {
  readonly #calls: RelayCalls;
  readonly #idle: Pipe[] = [];
  /** How many more may be made. At 0 bulk is copied, until one comes back. */
  #left: number;

  constructor(calls: RelayCalls, limit: number) {
    this.#calls = calls;
    this.#left = limit;
  }

  take(): Pipe | null {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#left === 0) return null;
    const made = this.#calls.openPipe();
    // Refused once, it would be refused again: asking costs three calls, so it is not asked for every piece.
    this.#left = made === null ? 0 : this.#left - 1;
    return made;
  }

  /** Empty. */
  giveBack(pipe: Pipe): void {
    this.#idle.push(pipe);
  }

  /** With bytes in it that nobody wants any more. */
  discard(pipe: Pipe): void {
    this.#close(pipe);
    this.#left++;
  }

  /** For a time of silence, and the end. */
  closeIdle(): void {
    for (const pipe of this.#idle.splice(0)) this.discard(pipe);
  }

  #close({ readEnd, writeEnd }: Pipe): void {
    this.#calls.close(readEnd);
    this.#calls.close(writeEnd);
  }
}
