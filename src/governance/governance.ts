/** Traffic control as the program sees it: prepare what can fail, then switch without failure. */
import { ApiError, ConfigError, messageOf, StoreError } from "#core/errors.ts";
import type {
  GovernanceView,
  MonthReportView,
  PolicyStatusView,
  ReportBucketView,
  ReportQuery,
} from "#core/governance.ts";
import type { Log } from "#core/log.ts";
import type { LeaseNames, Neighbours } from "#core/neighbours.ts";
import { SteadyTime } from "#lib/steady-time.ts";
import { SettledClock } from "#lib/settled-clock.ts";
import { parseIp } from "#net/address/ip.ts";
import { isAbout, type DevicesEnv } from "./about-devices.ts";
import { openCalendar } from "./calendar.ts";
import { type GovernanceState, loadState } from "./checkpoint.ts";
import { LateStore } from "./late-store.ts";
import type { ForwardedSums, GovernedLedger } from "./ledger.ts";
import { monthReport } from "./month-report.ts";
import type { ReportTime } from "./portal-plot.ts";
import { entriesOf, repeatedId } from "./policy-book.ts";
import {
  checkSize,
  closeStore,
  commitAndClose,
  openNowhere,
  openStoreFile,
  type OpeningEnv,
} from "./opening.ts";
import { ActiveGovernance, type ActiveGovernanceParts } from "./running.ts";
import type { GovernanceSettings } from "./settings.ts";
import type { SeriesRecords, StoreFile } from "./store.ts";
import { governanceView } from "./views.ts";

export interface GovernanceEnv {
  readonly ledger: GovernedLedger;
  readonly log: Log;
  readonly neighbours: Neighbours;
  readonly leases: LeaseNames;
  /** Where `store` of the configuration lies. Throws `ConfigError`. */
  storeFile(store: string): { readonly key: string; readonly file: StoreFile };
}

/** A configuration that is ready. Exactly one of the two is called. */
export interface Prepared {
  /** Puts it in force: synchronous, never throws. */
  activate(): void;
  abandon(): void;
}

export class Governance implements Disposable {
  readonly #env: GovernanceEnv;
  /** Every store that is no longer in use has been let go of. */
  #left: Promise<unknown> = Promise.resolve();
  #running: ActiveGovernance | null = null;
  #settings: GovernanceSettings | null = null;
  #revision = 0;
  readonly #settled: SettledClock;
  readonly #lateStore: LateStore;
  #isLent = false;

  constructor(env: GovernanceEnv) {
    this.#env = env;
    this.#settled = new SettledClock(env.ledger.clock);
    this.#lateStore = new LateStore({
      ...this.#opening,
      running: () => this.#running,
      fileOf: (store) => env.storeFile(store).file,
      leave: (closing) => this.#leave(closing),
    });
  }

  /** Grows with every configuration that was applied. */
  get revision(): number {
    return this.#revision;
  }

  /** Those applied last, switched off or not; null: there is no such block. */
  get settings(): GovernanceSettings | null {
    return this.#settings;
  }

  get enabled(): boolean {
    return this.#running !== null;
  }

  /**
   * Opens what the configuration needs and commits what the one in force has counted. Rejects with nothing changed.
   * `tolerant`: a store that cannot be opened is logged and tried again by itself; the limits hold meanwhile, and
   * nothing is kept before it is open.
   */
  async prepare(
    settings: GovernanceSettings | null,
    { tolerant }: { readonly tolerant: boolean },
  ): Promise<Prepared> {
    const next = settings?.enabled === true ? await this.#open(settings, tolerant) : null;
    const isNew = next !== null && next.checkpoint !== this.#running?.parts.checkpoint;
    const abandon = (): void => {
      if (isNew) this.#leave(closeStore(next, this.#env.log));
    };
    try {
      await this.#running?.commit();
    } catch (error) {
      abandon();
      throw error;
    }
    const activate = (): void => {
      this.#settings = settings;
      this.#activate(next);
    };
    return { abandon, activate };
  }

  async #open(settings: GovernanceSettings, tolerant: boolean): Promise<ActiveGovernanceParts> {
    const entries = entriesOf(settings);
    const repeated = repeatedId(entries);
    if (repeated !== null) throw new ConfigError(`traffic-control: policy id ${repeated} is used twice`);
    const { key, file } = this.#env.storeFile(settings.store);
    const running = this.#running;
    const maxBytes = settings.maxStoreSizeBytes;
    const common = { settings, entries, settled: this.#settled };
    if (running?.parts.storeKey === key) {
      if (running.parts.fault !== null) await this.#lateStore.open(settings);
      const { books, checkpoint, rollback } = running.parts;
      await checkSize(checkpoint, settings, () => running.shrink());
      return { ...common, storeKey: key, books, checkpoint, rollback, fault: null };
    }
    await this.#left; // it may have been this file
    try {
      const { records, ...opened } = await openStoreFile(file, settings, this.#opening);
      return { ...common, ...opened, storeKey: key, books: this.#load(records), fault: null };
    } catch (error) {
      if (!tolerant) throw error;
      const fault = messageOf(error);
      this.#env.log.error(
        `traffic control: ${fault}; the limits hold without what was used before, nothing that is counted outlives this process before the store is open; it is tried again`,
      );
      const { records, ...opened } = openNowhere(maxBytes, this.#env.log);
      return { ...common, ...opened, storeKey: key, books: this.#load(records), fault };
    }
  }

  get #opening(): OpeningEnv {
    const { ledger, log } = this.#env;
    return { clock: ledger.clock, log };
  }

  #load(records: SeriesRecords): GovernanceState {
    const { ledger, log } = this.#env;
    return loadState(records, new SteadyTime(ledger.clock), log);
  }

  #activate(next: ActiveGovernanceParts | null): void {
    const { ledger, neighbours, log } = this.#env;
    const old = this.#running;
    old?.stop();
    if (old !== null && old.parts.checkpoint !== next?.checkpoint) {
      ledger.install(null); // counts to the last byte go to the books that they belong to
      this.#leave(commitAndClose(old, log));
    }
    this.#revision++;
    this.#running = next === null ? null : new ActiveGovernance(next, ledger, neighbours, log);
    this.#lateStore.follow(next?.fault ?? null);
    if (this.#running === null) ledger.install(null);
    else this.#running.start();
  }

  #leave(closing: Promise<void>): void {
    this.#left = Promise.all([this.#left, closing]);
  }

  /** The work of each second; called by the timer, and by callers that need its result at once. */
  async tick(): Promise<void> {
    await this.#running?.tick();
  }

  /**
   * Another process gets the store: all that was counted is in it when this resolves, and `forward` has what was counted
   * since. Rejects with `StoreError`; `reclaim` has to be called then.
   */
  async release(forward: (sums: ForwardedSums) => void): Promise<void> {
    this.#isLent = true;
    const fault = this.#running?.parts.fault ?? null;
    if (fault !== null) throw new StoreError(`traffic control: ${fault}`);
    await this.#running?.release(forward);
  }

  /** Takes back the store, and what was forwarded since. */
  reclaim(forwarded: readonly ForwardedSums[]): void {
    this.#isLent = false;
    this.#running?.reclaim(forwarded);
  }

  /** Of the store in use, as `storeFile` called it; null: nothing is counted. */
  get storeKey(): string | null {
    return this.#running?.parts.storeKey ?? null;
  }

  /** What was counted up to now is on the medium when it resolves. Rejects with `StoreError`. */
  async flush(): Promise<void> {
    this.#env.ledger.settle(0);
    if (!this.#isLent) await this.#running?.commit();
  }

  get #devices(): DevicesEnv {
    return { ...this.#env, settings: this.#settings };
  }

  status(): GovernanceView {
    if (this.#running !== null) this.#env.ledger.settle();
    return governanceView(this.#running, this.#revision, this.#devices);
  }

  /** Enabled policies about the device with this address, and the one about all. */
  statusOf(address: string): readonly PolicyStatusView[] {
    const ip = parseIp(address);
    const own =
      ip === null
        ? []
        : (this.#running?.parts.entries.filter((entry) => isAbout(entry, ip, this.#devices)) ?? []);
    const ids = new Set(own.map(({ policy }) => policy.id));
    return this.status().policies.filter(({ id }) => ids.has(id));
  }

  /** Null: no such policy. Rejects with `StoreError` where the reset could not be committed, `ApiError` 500 where no store is open. */
  async reset(id: string): Promise<GovernanceView | null> {
    const running = this.#running;
    const entry = running?.parts.entries.find(({ policy }) => policy.id === id);
    if (running === null || entry === undefined) return null;
    if (running.parts.fault !== null)
      throw new ApiError(500, `nothing was reset, it could not be kept: ${running.parts.fault}`);
    this.#env.ledger.settle(0); // what has moved belongs to the generation that ends
    await running.reset(entry);
    return this.status();
  }

  report({ key, granularity, from, to }: ReportQuery): readonly ReportBucketView[] {
    if (this.#running === null) return [];
    this.#env.ledger.settle();
    return this.#running.parts.books.reports.query(key, granularity, from, to);
  }

  reportTime(): ReportTime {
    const timeZone = this.#running?.parts.settings.reports.timeZone ?? null;
    return { calendar: openCalendar(timeZone), timeZone };
  }

  monthReport(month: string | null): MonthReportView {
    return monthReport(month, {
      ...this.reportTime(),
      nowSeconds: Math.floor(this.#env.ledger.clock.wallMs() / 1000),
      policies: this.status().policies,
      report: (query) => this.report(query),
    });
  }

  /**
   * The end of the program: all is committed and the store is closed when this returns, however long the medium takes;
   * what is counted later is lost.
   */
  [Symbol.dispose](): void {
    const { ledger, log } = this.#env;
    const old = this.#running;
    if (old === null) return;
    this.#running = null;
    this.#lateStore.follow(null);
    old.stop();
    ledger.install(null);
    if (this.#isLent) return;
    try {
      old.closeNow();
    } catch (error) {
      log.error(`traffic control: closing the store: ${messageOf(error)}`);
    }
  }
}
