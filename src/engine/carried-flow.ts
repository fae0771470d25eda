import type { Direction, Meter } from "#core/meter.ts";
import type { CarryOptions } from "#relay/carrier.ts";
import type { Idle } from "#relay/sweep.ts";
import type { Carried, RelayThread } from "./relay-thread.ts";
import { CLOSE, RESET } from "./shared-table.ts";

/** One conversation as the main thread sees it: what a relay thread counts is handed on by sums. */
export class CarriedFlow implements Carried, Idle {
  activeAtMs = 0;
  idleMs: number;
  readonly #thread: RelayThread;
  readonly #meter: Meter;
  readonly #options: CarryOptions;
  readonly #done: () => void;
  #slot = -1;
  #uploadBytes = 0;
  #downloadBytes = 0;
  readonly #onAbort = (): void => this.#thread.command(this.#slot, RESET);

  constructor(thread: RelayThread, meter: Meter, options: CarryOptions, done: () => void) {
    this.#thread = thread;
    this.#meter = meter;
    this.#options = options;
    this.#done = done;
    this.idleMs = options.idleMs;
  }

  /** `slot` of its thread is this conversation's from now on. */
  start(slot: number): void {
    this.#slot = slot;
    this.#options.sweep.add(this);
    this.#options.signal.addEventListener("abort", this.#onAbort);
  }

  look(): void {
    const { counts, halfClosed } = this.#thread.table;
    const { sweep, halfClosedIdleMs } = this.#options;
    const uploadBytes = counts[this.#slot * 2] as number;
    const downloadBytes = counts[this.#slot * 2 + 1] as number;
    if (halfClosed[this.#slot] === 1) this.idleMs = Math.min(this.idleMs, halfClosedIdleMs);
    if (uploadBytes === this.#uploadBytes && downloadBytes === this.#downloadBytes) return;
    this.activeAtMs = sweep.nowMs;
    this.#count("upload", uploadBytes - this.#uploadBytes);
    this.#count("download", downloadBytes - this.#downloadBytes);
    this.#uploadBytes = uploadBytes;
    this.#downloadBytes = downloadBytes;
  }

  #count(direction: Direction, bytes: number): void {
    if (bytes === 0) return;
    this.#options.onBytes(direction, bytes);
    this.#meter.charge(direction, bytes);
  }

  expire(): void {
    this.#thread.command(this.#slot, CLOSE);
  }

  onEnded(): void {
    this.look();
    this.#options.sweep.remove(this);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#done();
  }
}
