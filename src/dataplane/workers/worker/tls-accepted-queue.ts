import type { PendingTask } from "./pending-task.ts";

/**
 * So many clients whose handshake is done may be on their way to the main thread, each with some 60 KiB of the TLS library's. It
 * takes fewer in one of its turns. The others stay here, where the oldest give way to new ones at the bounds.
 */
const MOST_ON_THE_WAY = 256;

/** Clients whose TLS handshake is done, in the order in which it was. */
export class TlsAcceptedQueue {
  readonly #waiting = new Set<PendingTask>();
  /** Slots of those that the main thread has not taken yet. */
  readonly #onTheWay = new Set<number>();

  add(one: PendingTask): void {
    if (this.#onTheWay.size < MOST_ON_THE_WAY) this.#hand(one);
    else this.#waiting.add(one);
  }

  /** It has gone, or was handed over for another reason. */
  leave(one: PendingTask): void {
    this.#waiting.delete(one);
  }

  /** The main thread has taken what was in the slot. */
  taken(slot: number): void {
    if (!this.#onTheWay.delete(slot)) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#hand(next);
  }

  #hand(one: PendingTask): void {
    this.#onTheWay.add(one.slot);
    one.handOver();
  }
}
