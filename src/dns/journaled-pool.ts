/** A fake-IP pool, and its changes that are not written down yet. */
import type { Ip, IpPrefix } from "#core/session.ts";
import { FakePool, type FakePoolState } from "./fake-pool.ts";

/** What changed since the last batch. `ip` null: forgotten. */
export interface FakeIpBatch {
  readonly family: 4 | 6;
  /** What the store holds of another range is of no use any more. */
  readonly range: string;
  /** Neither is what it holds of this range: it was not told of changes before. */
  readonly isAnew: boolean;
  readonly offset: number;
  readonly cycle: boolean;
  readonly pairs: readonly (readonly [host: string, ip: Ip | null])[];
}

/** Takes batches to the store. Must not throw. */
export type PersistFakeIp = (batch: FakeIpBatch) => void;

/** The address that another process gives to a name. Rejects where it gives none. */
export type AllocateElsewhere = (family: 4 | 6, host: string) => Promise<Ip>;

const BATCH_MS = 200;
/** Names in a batch: some milliseconds. */
const MOST_IN_A_BATCH = 1_000;

export class JournaledPool {
  readonly pool: FakePool;
  readonly #family: 4 | 6;
  #persist: PersistFakeIp | null;
  /** Null: this pool gives addresses out itself. */
  #elsewhere: AllocateElsewhere | null = null;
  #isAnew = false;
  /** Names; what is written is what the pool has of them by then. */
  readonly #changed = new Set<string>();
  #isWaiting = false;

  /** Throws `ConfigError` where the range has no room. `persist` null: nothing is written down. */
  constructor(family: 4 | 6, range: IpPrefix, persist: PersistFakeIp | null) {
    this.#family = family;
    this.#persist = persist;
    this.pool = new FakePool(range, (host) => this.#note(host));
  }

  /** The address of a name, a new one where it has none. Rejects where another process gives them out, and gives none. */
  addressOf(host: string): Ip | Promise<Ip> {
    const elsewhere = this.#elsewhere;
    return elsewhere === null || this.pool.has(host)
      ? this.pool.allocate(host)
      : this.#allocateBy(elsewhere, host);
  }

  async #allocateBy(elsewhere: AllocateElsewhere, host: string): Promise<Ip> {
    try {
      const ip = await elsewhere(this.#family, host);
      this.pool.adopt(host, ip);
      return ip;
    } catch (error) {
      if (this.#elsewhere === null) return this.pool.allocate(host); // they are given out here again
      throw error;
    }
  }

  /** What the pool is when another process begins to give out its addresses: those that it has are good in both. */
  giveTo(elsewhere: AllocateElsewhere): FakePoolState {
    this.#elsewhere = elsewhere;
    return this.pool.state;
  }

  /** This one gives them out again. To be called before what waits for the other process is rejected. */
  takeBack(): void {
    this.#elsewhere = null;
  }

  /** From now on changes go there. Where they went nowhere before, all that the pool has is one. */
  persistTo(persist: PersistFakeIp | null): void {
    const wasKept = this.#persist !== null;
    this.#persist = persist;
    if (persist === null) return this.#changed.clear();
    if (wasKept) return;
    this.#isAnew = true;
    for (const host of this.pool.hosts()) this.#note(host);
  }

  /** All changes, now. */
  write(): void {
    while (this.#changed.size > 0) this.#writeBatch();
  }

  #note(host: string): void {
    if (this.#persist === null) return;
    this.#changed.add(host);
    this.#writeSoon();
  }

  #writeSoon(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    setTimeout(() => {
      this.#isWaiting = false;
      this.#writeBatch();
      if (this.#changed.size > 0) this.#writeSoon();
    }, BATCH_MS).unref();
  }

  #writeBatch(): void {
    if (this.#changed.size === 0) return;
    const { range, offset, cycle } = this.pool;
    const hosts = [...this.#changed.values().take(MOST_IN_A_BATCH)];
    const pairs = hosts.map((host) => [host, this.pool.ipOfHost(host)] as const);
    this.#persist?.({ family: this.#family, range, isAnew: this.#isAnew, offset, cycle, pairs });
    for (const host of hosts) this.#changed.delete(host);
    this.#isAnew = false;
  }
}
