import type { Pipe, RelayCalls } from "#platform/linux/relay-calls.ts";
import { NO_PIPE } from "#dataplane/workers/shared/pipe-memory.ts";

/** The pipes of one worker: made when first wanted, lent for as long as bytes are in them. */
export class Pipes {
  readonly #calls: RelayCalls;
  readonly #idle: Pipe[] = [];
  readonly #ends: Int32Array;
  /** How many more may be made. At 0 bulk is copied, until one comes back or the thread was silent. */
  #left: number;

  /** `memory` says how many there may be. */
  constructor(calls: RelayCalls, memory: SharedArrayBuffer) {
    this.#calls = calls;
    this.#ends = new Int32Array(memory);
    this.#left = this.#ends.length / 2;
  }

  take(): Pipe | null {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#left === 0) return null;
    const made = this.#calls.openPipe();
    // Refused once, it would be refused again: asking costs three calls, so it is not asked for every piece.
    this.#left = made === null ? 0 : this.#left - 1;
    if (made !== null) this.#ends.set([made.readEnd, made.writeEnd], this.#ends.indexOf(NO_PIPE));
    return made;
  }

  /** Empty. */
  giveBack(pipe: Pipe): void {
    this.#idle.push(pipe);
  }

  /** With bytes in it that are no longer needed. */
  discard(pipe: Pipe): void {
    this.#close(pipe);
    this.#left++;
  }

  /** For a time of silence, and the end. */
  closeIdle(): void {
    for (const pipe of this.#idle.splice(0)) this.#close(pipe);
    // Also those that were refused: there may be descriptors by now.
    this.#left = this.#ends.filter((fd) => fd === NO_PIPE).length / 2;
  }

  #close({ readEnd, writeEnd }: Pipe): void {
    const at = this.#ends.indexOf(readEnd);
    this.#ends.fill(NO_PIPE, at, at + 2); // first: the number may be another file's after the close
    this.#calls.close(readEnd);
    this.#calls.close(writeEnd);
  }
}
