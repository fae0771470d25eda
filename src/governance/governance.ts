/** Traffic control as the program sees it: prepare what can fail, then switch without failure. */
import { ConfigError, messageOf, StoreError } from "#core/errors.ts";
import type { GovernanceView, PolicyStatusView, ReportBucketView, ReportQuery } from "#core/governance.ts";
import type { Log } from "#core/log.ts";
import { SteadyTime } from "#lib/steady-time.ts";
import { cidrHolds } from "#net/address/cidr.ts";
import { parseIpBytes } from "#net/address/ip.ts";
import { Checkpoint, type GovernanceState, loadState } from "./checkpoint.ts";
import type { GovernedLedger } from "./ledger.ts";
import { entriesOf, repeatedId } from "./policy-book.ts";
import { ActiveGovernance, type ActiveGovernanceParts } from "./running.ts";
import type { GovernanceSettings } from "./settings.ts";
import { SettledClock } from "./settled-clock.ts";
import { MemoryStore, type SeriesRecords, type StoreFile } from "./store.ts";
import { statusView } from "./views.ts";

export interface GovernanceEnv {
  readonly ledger: GovernedLedger;
  readonly log: Log;
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

  constructor(env: GovernanceEnv) {
    this.#env = env;
    this.#settled = new SettledClock(env.ledger.clock);
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
   * `tolerant`: a store that cannot be opened is logged, and nothing is kept over a restart; the limits hold.
   */
  async prepare(
    settings: GovernanceSettings | null,
    { tolerant }: { readonly tolerant: boolean },
  ): Promise<Prepared> {
    const next = settings?.enabled === true ? await this.#open(settings, tolerant) : null;
    const isNew = next !== null && next.checkpoint !== this.#running?.parts.checkpoint;
    const abandon = (): void => {
      if (isNew) this.#leave(closed(next, this.#env.log));
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
    const now = this.#running?.parts;
    const maxBytes = settings.maxStoreSizeBytes;
    const common = { settings, entries, settled: this.#settled };
    if (now?.storeKey === key) {
      checkSize(now.checkpoint.storeBytes, settings);
      return { ...common, storeKey: key, books: now.books, checkpoint: now.checkpoint };
    }
    const { log } = this.#env;
    await this.#left; // it may have been this file
    try {
      checkSize(file.sizeBytes(), settings);
      const { store, records } = await file.open();
      const books = this.#load(records);
      const checkpoint = new Checkpoint(store, records, file, maxBytes, log);
      return { ...common, storeKey: key, books, checkpoint };
    } catch (error) {
      if (!tolerant) throw error;
      log.error(`traffic control: ${messageOf(error)}; nothing that is counted outlives this process`);
      const store = new MemoryStore();
      const { records } = store;
      const nowhere: StoreFile = { open: async () => ({ store, records }), sizeBytes: () => 0 };
      const checkpoint = new Checkpoint(store, records, nowhere, maxBytes, log);
      return { ...common, storeKey: `memory ${key}`, books: this.#load(records), checkpoint };
    }
  }

  #load(records: SeriesRecords): GovernanceState {
    const { ledger, log } = this.#env;
    return loadState(records, new SteadyTime(ledger.clock), log);
  }

  #activate(next: ActiveGovernanceParts | null): void {
    const { ledger, log } = this.#env;
    const old = this.#running;
    old?.stop();
    if (old !== null && old.parts.checkpoint !== next?.checkpoint) {
      ledger.install(null); // counts to the last byte go to the books that they belong to
      this.#leave(finish(old, log));
    }
    this.#revision++;
    this.#running = next === null ? null : new ActiveGovernance(next, ledger, log);
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

  status(): GovernanceView {
    const running = this.#running;
    if (running === null) {
      const none = { lastCheckpoint: 0, storeBytes: 0, uncompressedBytes: 0, policies: [] };
      return { enabled: false, revision: this.#revision, ...none };
    }
    this.#env.ledger.settle();
    const { entries, checkpoint } = running.parts;
    return {
      enabled: true,
      revision: this.#revision,
      lastCheckpoint: checkpoint.lastSeconds,
      storeBytes: checkpoint.storeBytes,
      uncompressedBytes: checkpoint.uncompressedBytes,
      policies: entries
        .map((entry) => statusView(entry, running.stateOf(entry)))
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
    };
  }

  /** Enabled policies about the device with this address, and the one about all. */
  statusOf(address: string): readonly PolicyStatusView[] {
    const bytes = parseIpBytes(address);
    const own = this.#running?.parts.entries.filter(
      (entry) =>
        entry.enabled &&
        (entry.dimension === "global" ||
          (entry.dimension === "device" &&
            bytes !== null &&
            entry.settings.sourceCidrs.some((cidr) => cidrHolds(cidr, bytes)))),
    );
    const ids = new Set(own?.map(({ policy }) => policy.id));
    return this.status().policies.filter(({ id }) => ids.has(id));
  }

  /** Null: no such policy. Rejects with `StoreError` where the reset could not be committed. */
  async reset(id: string): Promise<GovernanceView | null> {
    const running = this.#running;
    const entry = running?.parts.entries.find(({ policy }) => policy.id === id);
    if (running === null || entry === undefined) return null;
    this.#env.ledger.settle(0); // what has moved belongs to the generation that ends
    await running.reset(entry);
    return this.status();
  }

  report({ key, granularity, from, to }: ReportQuery): readonly ReportBucketView[] {
    if (this.#running === null) return [];
    this.#env.ledger.settle();
    return this.#running.parts.books.reports.query(key, granularity, from, to);
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
    old.stop();
    ledger.install(null);
    try {
      old.closeNow();
    } catch (error) {
      log.error(`traffic control: closing the store: ${messageOf(error)}`);
    }
  }
}

/** Never rejects. */
async function finish(running: ActiveGovernance, log: Log): Promise<void> {
  try {
    await running.commit();
  } catch (error) {
    log.error(`traffic control: the last counts are lost: ${messageOf(error)}`);
  }
  await closed(running.parts, log);
}

/** Never rejects. */
async function closed({ checkpoint }: ActiveGovernanceParts, log: Log): Promise<void> {
  try {
    await checkpoint.close();
  } catch (error) {
    log.error(`traffic control: closing the store: ${messageOf(error)}`);
  }
}

function checkSize(sizeBytes: number, { store, maxStoreSizeBytes }: GovernanceSettings): void {
  if (sizeBytes > maxStoreSizeBytes)
    throw new StoreError(`${store} has ${sizeBytes} bytes, more than max-store-size ${maxStoreSizeBytes}`);
}
