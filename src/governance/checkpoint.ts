/** What is written: whole records at a commit, the open minute each second. */
import { messageOf, StoreError, tooManyChanges } from "#core/errors.ts";
import { KeyedQueue } from "#lib/keyed-queue.ts";
import type { Log } from "#core/log.ts";
import type { SteadyTime } from "#lib/steady-time.ts";
import { PolicyState } from "./policy-state.ts";
import { Reports } from "./reports.ts";
import { Series } from "./series.ts";
import { StateBook } from "./state-book.ts";
import type { Part, RecordChange, SeriesRecords, SeriesStore, StoreFile } from "./store.ts";

/** What lives in memory between the commits. */
export interface GovernanceState {
  readonly states: StateBook;
  readonly reports: Reports;
}

/**
 * Asked when a piece of work has its turn, with all that was counted up to then handed on: a quota's window is counted in
 * at once and everything else in sums, and a record shall not hold one without the other.
 */
export type OpenState = () => GovernanceState;

/** A record that cannot be read costs itself, not the others: its statistics are gone, and the log says so. */
export function loadState(records: SeriesRecords, time: SteadyTime, log: Log): GovernanceState {
  const texts = (part: Part) =>
    [...(records.get(part) ?? [])].map(([key, value]) => [key, textOf(value)] as const);
  const readable = <T>(part: Part, decode: (text: string) => T): Map<string, T> => {
    const found = new Map<string, T>();
    for (const [key, text] of texts(part))
      try {
        found.set(key, decode(text));
      } catch (error) {
        log.error(`traffic control: record ${key} of ${part} is left out: ${messageOf(error)}`);
      }
    return found;
  };
  const states = readable("policies", (text) => PolicyState.decode(text, time));
  const series = readable("reports", Series.decode);
  const journal = readable("journal", (text) => text);
  for (const [key, text] of journal) foldIn(key, text, states, series, time);
  return { states: new StateBook(time, states.values()), reports: new Reports([...series.values()]) };
}

const POLICY = "p:";
const SERIES = "r:";

/** Journal values are absolute, so folding them in twice does no harm. */
function foldIn(
  key: string,
  text: string,
  states: Map<string, PolicyState>,
  series: Map<string, Series>,
  time: SteadyTime,
): void {
  const name = key.slice(POLICY.length);
  if (key.startsWith(POLICY)) {
    const recent = PolicyState.decode(text, time);
    const known = states.get(name);
    if (known !== undefined && known.generation === recent.generation) addOlder(recent, known);
    recent.dirty = true;
    recent.journalFrom = -Infinity; // only the journal has them yet: its next record must hold them again
    states.set(name, recent);
    return;
  }
  let known = series.get(name);
  if (known === undefined) series.set(name, (known = new Series(name, 0)));
  known.fold(text);
}

/** A record of the journal holds the buckets from a time on; the older ones are as they were stored. */
function addOlder(recent: PolicyState, known: PolicyState): void {
  const { window, journalFrom } = recent;
  if (window === null || known.window === null || journalFrom === -Infinity) return;
  const newer = window.store();
  const older = known.window.store().filter(([start]) => start < journalFrom);
  window.clear();
  for (const [start, upload, download] of [...older, ...newer]) window.add(start, upload, download);
}

/**
 * While something is written bytes are counted on. So what is put into words counts as written from then on, and as not
 * written again where the store does not take it. One piece of work after the other.
 */
export class Checkpoint {
  readonly #store: SeriesStore;
  readonly #file: StoreFile;
  readonly #log: Log;
  readonly #queues = new KeyedQueue(tooManyChanges);
  /** Those that the store has, or may have. */
  #journalKeys = new Set<string>();
  readonly #lengths = new Map<string, number>();
  /** Unix seconds of the last commit; 0: none yet. */
  lastSeconds = 0;
  maxBytes: number;

  /** `records`: as they were when `store` was opened. */
  constructor(store: SeriesStore, records: SeriesRecords, file: StoreFile, maxBytes: number, log: Log) {
    this.#store = store;
    this.#file = file;
    this.maxBytes = maxBytes;
    this.#log = log;
    for (const [key] of records.get("journal") ?? []) this.#journalKeys.add(key);
    for (const part of ["policies", "reports"] as const)
      for (const [key, value] of records.get(part) ?? []) this.#lengths.set(`${part}/${key}`, value.length);
  }

  get storeBytes(): number {
    return this.#file.sizeBytes();
  }

  get uncompressedBytes(): number {
    return this.#lengths.values().reduce((sum, length) => sum + length, 0);
  }

  /** Writes every changed record in one transaction. Rejects with `StoreError`: the next try writes all of it. */
  commit(books: OpenState, nowSeconds: number): Promise<void> {
    return this.#queues.on("", async () => {
      await this.#write(books, nowSeconds);
      await this.#fit(books, nowSeconds);
    });
  }

  /** Writes the same, and takes log, open minute and free pages out of the file. Rejects with `StoreError`. */
  shrink(books: OpenState, nowSeconds: number): Promise<void> {
    return this.#queues.on("", async () => {
      await this.#write(books, nowSeconds);
      await this.#store.compact();
    });
  }

  /** The same with a change of what is counted, which is in force when this resolves, and taken back where it rejects. */
  change(books: OpenState, nowSeconds: number, make: () => () => void): Promise<void> {
    return this.#queues.on("", async () => {
      const takeBack = make();
      try {
        await this.#write(books, nowSeconds);
      } catch (error) {
        takeBack();
        throw error;
      }
    });
  }

  async #write(books: OpenState, nowSeconds: number): Promise<void> {
    const { states, reports } = books();
    const dirtyStates = [...states.all()].filter(({ dirty }) => dirty);
    const dirtySeries = [...reports.all()].filter(({ dirty }) => dirty);
    const gone = { policies: [...states.gone], reports: [...reports.gone] };
    const journalKeys = this.#journalKeys;
    const changes: RecordChange[] = [
      ...dirtyStates.map((state) => put("policies", state.key, state.encode())),
      ...dirtySeries.map((series) => put("reports", series.key, series.encode())),
      ...gone.policies.map((key) => ({ part: "policies" as const, key, value: null })),
      ...gone.reports.map((key) => ({ part: "reports" as const, key, value: null })),
      ...[...journalKeys].map((key) => ({ part: "journal" as const, key, value: null })),
    ];
    this.#journalKeys = new Set();
    try {
      await this.#take(changes, [...dirtyStates, ...dirtySeries]);
    } catch (error) {
      this.#journalKeys = this.#journalKeys.union(journalKeys);
      throw error;
    }
    for (const { part, key, value } of changes)
      if (value === null) this.#lengths.delete(`${part}/${key}`);
      else this.#lengths.set(`${part}/${key}`, value.length);
    states.forgetGone(gone.policies);
    reports.forgetGone(gone.reports);
    this.lastSeconds = nowSeconds;
  }

  /**
   * What cannot wait for the next commit: the policies whole, of the reports only what is new, so that a quota reached
   * in the middle of traffic does not hold the traffic up. Rejects with `StoreError`.
   */
  urgent(books: OpenState, nowSeconds: number): Promise<void> {
    return this.#queues.on("", async () => {
      const { states, reports } = books();
      const written = [...states.all()].filter(({ dirty }) => dirty);
      const recent = [...reports.all()].filter(({ journalDirty }) => journalDirty);
      const stale = [...this.#journalKeys].filter((key) => key.startsWith(POLICY));
      const changes = [
        ...written.map((state) => put("policies", state.key, state.encode())),
        ...recent.map((series) => put("journal", SERIES + series.key, series.encodeRecent())),
        ...stale.map((key) => ({ part: "journal" as const, key, value: null })),
      ];
      for (const series of recent) this.#journalKeys.add(SERIES + series.key);
      await this.#take(changes, written, recent);
      for (const key of stale) this.#journalKeys.delete(key);
      this.lastSeconds = nowSeconds;
    });
  }

  /**
   * What changed since the last second, so that a crash loses one second at most; in both files, because a log with a
   * changed byte ends there without a word. Rejects with `StoreError`.
   */
  journal(books: OpenState): Promise<void> {
    return this.#queues.on("", async () => {
      const { states, reports } = books();
      const recentStates = [...states.all()].filter(({ journalDirty }) => journalDirty);
      const recentSeries = [...reports.all()].filter(({ journalDirty }) => journalDirty);
      const changes = [
        ...recentStates.map((state) => put("journal", POLICY + state.key, state.encode(state.journalFrom))),
        ...recentSeries.map((series) => put("journal", SERIES + series.key, series.encodeRecent())),
      ];
      for (const { key } of changes) this.#journalKeys.add(key);
      await this.#take(changes, [], [...recentStates, ...recentSeries]);
    });
  }

  /** `whole` are among the changes with all that they hold, of `recent` the journal gets what is new. */
  async #take(
    changes: readonly RecordChange[],
    whole: readonly Kept[],
    recent: readonly Kept[] = [],
  ): Promise<void> {
    if (changes.length === 0) return;
    const before = [...whole, ...recent].map((one) => [one, marksOf(one)] as const);
    for (const one of whole) Object.assign(one, { dirty: false, journalDirty: false, journalFrom: Infinity });
    for (const one of recent) one.journalDirty = false;
    try {
      await this.#store.commit(changes, { backup: true });
    } catch (error) {
      for (const [one, { dirty, journalDirty, journalFrom }] of before) {
        one.dirty ||= dirty;
        one.journalDirty ||= journalDirty;
        one.journalFrom = Math.min(one.journalFrom, journalFrom);
      }
      throw error;
    }
  }

  /** A file above its cap loses report series, those quiet for longest first; states and quotas never. */
  async #fit(books: OpenState, nowSeconds: number): Promise<void> {
    if (this.storeBytes <= this.maxBytes) return;
    await this.#store.compact(); // free pages first: often that is all
    while (this.storeBytes > this.maxBytes) {
      const dropped = books().reports.dropOldest();
      if (dropped === 0)
        throw new StoreError(
          `the store has ${this.storeBytes} bytes, more than max-store-size ${this.maxBytes}, and no report is left to drop`,
        );
      this.#log.warning(`traffic control: the store is full; ${dropped} report series were dropped`);
      await this.#write(books, nowSeconds);
      await this.#store.compact();
    }
  }

  /** Behind all that was asked for. Rejects with `StoreError`. */
  close(): Promise<void> {
    return this.#queues.on("", () => this.#store.close());
  }

  /** A last commit, and the store is closed when this returns; for the end of the program. Throws `StoreError`. */
  closeNow(books: OpenState, nowSeconds: number): void {
    this.#write(books, nowSeconds).catch((error: unknown) =>
      this.#log.error(`traffic control: the last counts are lost: ${messageOf(error)}`),
    );
    this.#store.closeNow();
  }
}

/** What remembers how much of it the store has. */
interface Kept {
  dirty: boolean;
  journalDirty: boolean;
  journalFrom: number;
}

function marksOf({ dirty, journalDirty, journalFrom }: Kept): Kept {
  return { dirty, journalDirty, journalFrom };
}

function put(part: Part, key: string, text: string): RecordChange {
  return { part, key, value: Buffer.from(text) };
}

function textOf(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("utf8");
}
