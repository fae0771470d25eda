/** Traffic control while it is switched on: one configuration, its books, its timers. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Neighbours } from "#core/neighbours.ts";
import type { Rollback } from "#core/rollback.ts";
import type { SettledClock } from "#lib/settled-clock.ts";
import { type GovernanceState, loadState, type OpenState, type Checkpoint } from "./checkpoint.ts";
import type { ForwardedSums, GovernedLedger } from "./ledger.ts";
import { openPolicyBook, type BookEntry } from "./policy-book.ts";
import type { PolicyState } from "./policy-state.ts";
import type { GovernanceSettings } from "./settings.ts";
import type { SeriesRecords } from "./store.ts";

/** A crash may cost a second: less than that, so that a late timer and the medium have their time. */
const TICK_MS = 500;

export interface ActiveGovernanceParts {
  readonly settings: GovernanceSettings;
  readonly entries: readonly BookEntry[];
  readonly books: GovernanceState;
  readonly checkpoint: Checkpoint;
  /** Outlives configurations. */
  readonly settled: SettledClock;
  /** Where the store lies; the next configuration with the same keeps the file open. */
  readonly storeKey: string;
  /** Why the store is not open and nothing is kept; null: it is. */
  readonly fault: string | null;
  /** The store came back older than what had been acknowledged. */
  readonly rollback: Rollback | null;
}

/** A store that was opened after its policies were put in force. */
export type OpenedLate = Pick<ActiveGovernanceParts, "checkpoint" | "rollback"> & {
  readonly records: SeriesRecords;
};

export class ActiveGovernance {
  #parts: ActiveGovernanceParts;
  readonly #ledger: GovernedLedger;
  readonly #log: Log;
  readonly #neighbours: Neighbours;
  #following: Disposable | null = null;
  readonly #members: ReadonlySet<string>;
  readonly #booksNow: OpenState = () => {
    this.#ledger.settle();
    return this.parts.books;
  };
  #timer: NodeJS.Timeout | null = null;
  #soon: NodeJS.Immediate | null = null;
  #committedAtMs: number;
  #failing = false;
  #isTicking = false;
  /** Another process has the store. */
  #isLent = false;

  constructor(parts: ActiveGovernanceParts, ledger: GovernedLedger, neighbours: Neighbours, log: Log) {
    this.#parts = parts;
    this.#ledger = ledger;
    this.#log = log;
    this.#neighbours = neighbours;
    this.#members = new Set(parts.entries.map(({ policy }) => `${policy.dimension}:${policy.id}`));
    this.#committedAtMs = ledger.clock.monotonicMs();
  }

  get parts(): ActiveGovernanceParts {
    return this.#parts;
  }

  /** The store still cannot be opened. */
  stayClosed(fault: string): void {
    this.#parts = { ...this.#parts, fault };
  }

  /** What the store holds and what has been counted without it are added up, and kept from now on. Never throws. */
  takeIn({ checkpoint, records, rollback }: OpenedLate): void {
    const { books, entries } = this.#parts;
    this.#ledger.settle(0);
    const older = loadState(records, books.states.time, this.#log);
    older.reports.rename(older.states.reconcile(entries, this.nowSeconds()));
    books.states.takeIn(older.states);
    books.reports.takeIn(older.reports);
    this.#parts = { ...this.#parts, checkpoint, rollback, fault: null };
    this.#soonAfter(() => this.commit());
  }

  /** Synchronous and without failure: from here on the policies hold, for live sessions too. */
  start(): void {
    const { books, entries, settings, checkpoint } = this.parts;
    const { states, reports } = books;
    checkpoint.maxBytes = settings.maxStoreSizeBytes;
    reports.configure(settings.reports);
    reports.rename(states.reconcile(entries, this.nowSeconds()));
    const byMac = settings.deviceIdentity === "neighbour" ? this.#neighbours : null;
    const book = openPolicyBook(entries, byMac);
    const onExceeded = () => this.#soonAfter(() => this.#commitUrgent());
    this.#ledger.install({ book, states, reports, onExceeded });
    this.#following = byMac?.watch((changed) => this.#ledger.bindAnew(changed)) ?? null;
    this.#timer = setInterval(() => void this.tick(), TICK_MS).unref();
    this.#soonAfter(() => this.commit());
  }

  /**
   * The last commit of this process: with it, in one moment, `forward` gets what is counted from then on. Rejects with
   * `StoreError`; `reclaim` has to be called then, too.
   */
  async release(forward: (sums: ForwardedSums) => void): Promise<void> {
    this.#isLent = true;
    let isForwarding = false;
    const books: OpenState = () => {
      if (!isForwarding) this.#ledger.forward(forward);
      isForwarding = true;
      return this.#booksNow();
    };
    this.#tidy();
    await this.parts.checkpoint.commit(books, this.nowSeconds());
  }

  /** The store is this process's again, and so is what was forwarded. */
  reclaim(forwarded: readonly ForwardedSums[]): void {
    this.#ledger.forward(null);
    for (const sums of forwarded) this.#ledger.takeBack(sums);
    this.#isLent = false;
    this.#soonAfter(() => this.commit());
  }

  /** The timers end; what was counted stays in the books. */
  stop(): void {
    this.#following?.[Symbol.dispose]();
    if (this.#timer !== null) clearInterval(this.#timer);
    if (this.#soon !== null) clearImmediate(this.#soon);
    this.#timer = this.#soon = null;
    for (const { policy } of this.parts.entries) {
      const state = this.parts.books.states.get(policy.id);
      if (state !== null) state.lastSeen = this.nowSeconds();
    }
  }

  nowSeconds(): number {
    return Math.floor(this.#ledger.clock.wallMs() / 1000);
  }

  stateOf({ policy }: BookEntry): PolicyState {
    return this.parts.books.states.of(policy); // start() gave every policy one
  }

  /**
   * More often than each second: the open minute, or the ordinary commit when its time has come. Never rejects; does
   * nothing while the tick before waits for the medium.
   */
  async tick(): Promise<void> {
    if (this.#isTicking || this.#isLent) return;
    this.#isTicking = true;
    this.parts.settled.nowSeconds();
    await this.#guarded(async () => {
      const { checkpoint, settings } = this.parts;
      const ageMs = this.#ledger.clock.monotonicMs() - this.#committedAtMs;
      await (ageMs >= settings.checkpointIntervalMs ? this.commit() : checkpoint.journal(this.#booksNow));
    });
    this.#isTicking = false;
  }

  /** Everything counted so far goes to the store. Rejects with `StoreError`; the next tick then tries again. */
  async commit(): Promise<void> {
    this.#tidy();
    await this.parts.checkpoint.commit(this.#booksNow, this.nowSeconds());
    this.#committedAtMs = this.#ledger.clock.monotonicMs();
  }

  /** The same, and the file becomes as small as what is kept. Rejects with `StoreError`. */
  async shrink(): Promise<void> {
    this.#tidy();
    await this.parts.checkpoint.shrink(this.#booksNow, this.nowSeconds());
  }

  /** Rejects with `StoreError`, and with the state as it was. */
  async reset(entry: BookEntry): Promise<void> {
    this.#tidy();
    const { checkpoint } = this.parts;
    const nowSeconds = this.nowSeconds();
    await checkpoint.change(this.#booksNow, nowSeconds, () => this.stateOf(entry).reset(nowSeconds));
  }

  /** The last commit, and the store is closed when this returns. Throws `StoreError`. */
  closeNow(): void {
    this.#tidy();
    this.parts.checkpoint.closeNow(this.#booksNow, this.nowSeconds());
  }

  #tidy(): void {
    const { books, settings, entries, settled } = this.parts;
    const settledSeconds = settled.nowSeconds();
    this.#ledger.settle();
    books.reports.maintain(this.nowSeconds(), settledSeconds, this.#members);
    const orphanBorder = settledSeconds - settings.reports.orphanRetentionMs / 1000;
    books.states.dropOrphans(new Set(entries.map(({ policy }) => policy.id)), orphanBorder);
  }

  async #commitUrgent(): Promise<void> {
    await this.parts.checkpoint.urgent(this.#booksNow, this.nowSeconds());
  }

  /** Many quotas that are reached in one turn of the loop make one commit. */
  #soonAfter(work: () => Promise<void>): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null;
      if (this.#isLent) return;
      void this.#guarded(work);
    });
  }

  /** Values that could not be written stay in memory and are tried again; the log reports it once. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failing = false;
    } catch (error) {
      this.#committedAtMs = -Infinity;
      if (!this.#failing) this.#log.error(`traffic control: ${messageOf(error)}; tried again each second`);
      this.#failing = true;
    }
  }
}
