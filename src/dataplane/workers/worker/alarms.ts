import { performance } from "node:perf_hooks";
import type { WireIo } from "#dataplane/workers/wire/wire.ts";

/** Slots whose task wants a turn at a time: few, such as ends that wait for silence. */
export class Alarms {
  /** By slot, when. */
  readonly #times = new Map<number, number>();
  /** None is due before; Infinity: there is none. */
  #nextAtMs = Infinity;

  /** One that is due before it stays. */
  set(slot: number, atMs: number): void {
    this.#times.set(slot, Math.min(atMs, this.#times.get(slot) ?? Infinity));
    this.#nextAtMs = Math.min(this.#nextAtMs, atMs);
  }

  /** As a wire of the slot's task has asked for it in its turn, if one has. */
  take(slot: number, io: WireIo): void {
    if (io.wakeAtMs === Infinity) return;
    this.set(slot, io.wakeAtMs);
    io.wakeAtMs = Infinity;
  }

  clear(slot: number): void {
    if (this.#times.size > 0) this.#times.delete(slot);
  }

  /** Calls for each that is due, once; it may set the next one. */
  ring(on: (slot: number) => void): void {
    if (this.#nextAtMs === Infinity || performance.now() < this.#nextAtMs) return;
    const [nowMs, present] = [performance.now(), [...this.#times]];
    this.#nextAtMs = Infinity;
    for (const [slot, atMs] of present)
      if (atMs > nowMs) this.#nextAtMs = Math.min(this.#nextAtMs, atMs);
      else if (this.#times.delete(slot)) on(slot);
  }

  /** Until the next one, at most so long. */
  sleepMs(mostMs: number): number {
    if (this.#nextAtMs === Infinity) return mostMs;
    return Math.min(mostMs, Math.max(0, Math.ceil(this.#nextAtMs - performance.now())));
  }
}
