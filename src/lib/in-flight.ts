import { PassingMap } from "./passing-map.ts";

export interface Bounds {
  readonly all: number;
  /** Of one address. */
  readonly ofOne: number;
}

/** What is under way, by the addresses of clients: one with thousands of slow questions leaves room for others. */
export class PerClientLimiter {
  readonly #bounds: Bounds;
  readonly #taken = new PassingMap<string, number>();
  #all = 0;
  /** Half of the bound was reached, and nothing was said of its end yet. */
  #isRush = false;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /**
   * False where the client, or all together, have too many under way; `leave` is to follow only where it is true. A refusal
   * makes no garbage, so it may come before anything is copied. From half of the bound on a client has no more than an even
   * share of it, but one at least, and those without any go a quarter beyond it: thousands of clients that ask for much
   * leave room for one that asks little.
   */
  enter(client: string): boolean {
    const own = this.#taken.get(client) ?? 0;
    if (own >= this.#mostOfOne() || this.#all >= this.#bounds.all * (own === 0 ? 1.25 : 1)) return false;
    this.#all++;
    if (this.#all * 2 >= this.#bounds.all) this.#isRush = true;
    this.#taken.set(client, own + 1);
    return true;
  }

  /** Has the client just one thing under way? */
  hasOne(client: string): boolean {
    return this.#taken.get(client) === 1;
  }

  leave(client: string): void {
    this.#all--;
    const left = (this.#taken.get(client) ?? 1) - 1;
    if (left > 0) this.#taken.set(client, left);
    else this.#taken.delete(client);
  }

  /** True once behind each rush: half of the bound was taken, and no more than an eighth is by now. */
  takeSettled(): boolean {
    if (!this.#isRush || this.#all * 8 > this.#bounds.all) return false;
    this.#isRush = false;
    return true;
  }

  /** Enters, and leaves once `work` has settled. Rejects where it may not enter. */
  async use<T>(client: string, work: () => Promise<T>): Promise<T> {
    if (!this.enter(client)) throw new Error(`${client} asks too much at once`);
    try {
      return await work();
    } finally {
      this.leave(client);
    }
  }

  #mostOfOne(): number {
    const { all, ofOne } = this.#bounds;
    if (this.#all * 2 < all) return ofOne;
    return Math.min(ofOne, Math.max(1, Math.floor(all / (this.#taken.size + 1))));
  }
}
