export interface Bounds {
  readonly all: number;
  /** Of one address. */
  readonly ofOne: number;
}

/** What is under way, by the addresses of clients: one with thousands of slow questions leaves room for others. */
export class Shares {
  readonly #bounds: Bounds;
  readonly #taken = new Map<string, number>();
  #all = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Rejects where the client, or all together, have too many under way. */
  async use<T>(client: string, work: () => Promise<T>): Promise<T> {
    const own = this.#taken.get(client) ?? 0;
    if (this.#all >= this.#bounds.all || own >= this.#bounds.ofOne)
      throw new Error(`${client} asks too much at once`);
    this.#all++;
    this.#taken.set(client, own + 1);
    try {
      return await work();
    } finally {
      this.#all--;
      const left = (this.#taken.get(client) ?? 1) - 1;
      if (left > 0) this.#taken.set(client, left);
      else this.#taken.delete(client);
    }
  }
}
