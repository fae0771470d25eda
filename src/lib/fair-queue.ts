import type { PerClientLimiter } from "./in-flight.ts";
import { TurnQueue } from "./turn-queue.ts";

export interface FairWork<Item> {
  readonly limiter: PerClientLimiter;
  /** Items that are begun in one turn of the event loop. */
  readonly perTurn: number;
  /** Must not reject. */
  readonly work: (item: Item) => Promise<void>;
  /** Called behind a flood: what it took can be given back. */
  readonly onSettled: () => void;
}

/**
 * Work that clients ask for in floods: bounded and shared evenly among them by the limiter, and begun in portions. What waits
 * counts as being under way; the first item of a client goes before the further ones of others.
 */
export class FairQueue<Item> {
  readonly #limiter: PerClientLimiter;
  readonly #work: FairWork<Item>["work"];
  readonly #onSettled: () => void;
  readonly #waiting: TurnQueue<{ readonly client: string; readonly item: Item }>;

  constructor({ limiter, perTurn, work, onSettled }: FairWork<Item>) {
    this.#limiter = limiter;
    this.#work = work;
    this.#onSettled = onSettled;
    this.#waiting = new TurnQueue(perTurn, ({ client, item }) => void this.#begin(client, item));
  }

  /** False where the client may not ask now; else `push` is to follow in the same turn. A refusal makes no garbage. */
  admits(client: string): boolean {
    return this.#limiter.enter(client);
  }

  push(client: string, item: Item): void {
    this.#waiting.push({ client, item }, this.#limiter.hasOne(client));
  }

  async #begin(client: string, item: Item): Promise<void> {
    try {
      await this.#work(item);
    } finally {
      this.#limiter.leave(client);
      if (this.#limiter.takeSettled()) this.#onSettled();
    }
  }
}
