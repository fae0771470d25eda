/** When and what is written: whole records at a commit, the open minute each second. */
import { messageOf, StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { PolicyState } from "./policy-state.ts";
import { Reports } from "./reports.ts";
import { Series } from "./series.ts";
import { StateBook } from "./state-book.ts";
import type { Part, RecordChange, SeriesStore, StoreFile } from "./store.ts";

/** What lives in memory between the commits. */
export interface Books {
  readonly states: StateBook;
  readonly reports: Reports;
}

/** A record that cannot be read costs itself, not the others: its statistics are gone, and the log says so. */
export function loadBooks(store: SeriesStore, log: Log): Books {
  const texts = (part: Part) => [...store.entries(part)].map(([key, value]) => [key, textOf(value)] as const);
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
  const states = readable("policies", PolicyState.decode);
  const series = readable("reports", Series.decode);
  const journal = readable("journal", (text) => text);
  for (const [key, text] of journal) foldIn(key, text, states, series);
  return { states: new StateBook(states.values()), reports: new Reports([...series.values()]) };
}

const POLICY = "p:";
const SERIES = "r:";

/** Journal values are absolute, so folding them in twice does no harm. */
function foldIn(
  key: string,
  text: string,
  states: Map<string, PolicyState>,
  series: Map<string, Series>,
): void {
  const name = key.slice(POLICY.length);
  if (key.startsWith(POLICY)) {
    const recent = PolicyState.decode(text);
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

export class Checkpoint implements Disposable {
  readonly #store: SeriesStore;
  readonly #file: StoreFile;
  readonly #log: Log;
  readonly #journalKeys = new Set<string>();
  readonly #lengths = new Map<string, number>();
  /** Unix seconds of the last commit; 0: none yet. */
  lastSeconds = 0;
  maxBytes: number;

  constructor(store: SeriesStore, file: StoreFile, maxBytes: number, log: Log) {
    this.#store = store;
    this.#file = file;
    this.maxBytes = maxBytes;
    this.#log = log;
    for (const [key] of store.entries("journal")) this.#journalKeys.add(key);
    for (const part of ["policies", "reports"] as const)
      for (const [key, value] of store.entries(part)) this.#lengths.set(`${part}/${key}`, value.length);
  }

  get storeBytes(): number {
    return this.#file.sizeBytes();
  }

  get uncompressedBytes(): number {
    return this.#lengths.values().reduce((sum, length) => sum + length, 0);
  }

  /** Writes every changed record in one transaction. Throws `StoreError`: all stays marked, the next try writes it. */
  commit({ states, reports }: Books, nowSeconds: number): void {
    this.#write(states, reports, nowSeconds);
    this.#fit(states, reports, nowSeconds);
  }

  #write(states: StateBook, reports: Reports, nowSeconds: number): void {
    const dirtyStates = [...states.all()].filter(({ dirty }) => dirty);
    const dirtySeries = [...reports.all()].filter(({ dirty }) => dirty);
    const gone = { policies: [...states.gone], reports: [...reports.gone] };
    const changes: RecordChange[] = [
      ...dirtyStates.map((state) => put("policies", state.key, state.encode())),
      ...dirtySeries.map((series) => put("reports", series.key, series.encode())),
      ...gone.policies.map((key) => ({ part: "policies" as const, key, value: null })),
      ...gone.reports.map((key) => ({ part: "reports" as const, key, value: null })),
      ...[...this.#journalKeys].map((key) => ({ part: "journal" as const, key, value: null })),
    ];
    if (changes.length > 0) this.#store.commit(changes, { backup: true });
    for (const { part, key, value } of changes)
      if (value === null) this.#lengths.delete(`${part}/${key}`);
      else this.#lengths.set(`${part}/${key}`, value.length);
    for (const one of [...dirtyStates, ...dirtySeries]) settled(one);
    states.forgetGone(gone.policies);
    reports.forgetGone(gone.reports);
    this.#journalKeys.clear();
    this.lastSeconds = nowSeconds;
  }

  /**
   * What cannot wait for the next commit: the policies whole, of the reports only what is new, so that a quota reached
   * in the middle of traffic does not hold the traffic up. Throws `StoreError`.
   */
  urgent({ states, reports }: Books, nowSeconds: number): void {
    const written = [...states.all()].filter(({ dirty }) => dirty);
    const recent = [...reports.all()].filter(({ journalDirty }) => journalDirty);
    const stale = [...this.#journalKeys].filter((key) => key.startsWith(POLICY));
    const changes = [
      ...written.map((state) => put("policies", state.key, state.encode())),
      ...recent.map((series) => put("journal", SERIES + series.key, series.encodeRecent())),
      ...stale.map((key) => ({ part: "journal" as const, key, value: null })),
    ];
    if (changes.length > 0) this.#store.commit(changes, { backup: true });
    for (const state of written) settled(state);
    for (const series of recent) {
      series.journalDirty = false;
      this.#journalKeys.add(SERIES + series.key);
    }
    for (const key of stale) this.#journalKeys.delete(key);
    this.lastSeconds = nowSeconds;
  }

  /**
   * What changed since the last second, so that a crash loses one second at most; in both files, because a log with a
   * changed byte ends there without a word. Throws `StoreError`.
   */
  journal({ states, reports }: Books): void {
    const changes: RecordChange[] = [];
    const written: { journalDirty: boolean }[] = [];
    for (const state of states.all())
      if (state.journalDirty) {
        changes.push(put("journal", POLICY + state.key, state.encode(state.journalFrom)));
        written.push(state);
      }
    for (const series of reports.all())
      if (series.journalDirty) {
        changes.push(put("journal", SERIES + series.key, series.encodeRecent()));
        written.push(series);
      }
    if (changes.length === 0) return;
    this.#store.commit(changes, { backup: true });
    for (const one of written) one.journalDirty = false;
    for (const { key } of changes) this.#journalKeys.add(key);
  }

  /** A file above its cap loses report series, those quiet for longest first; states and quotas never. */
  #fit(states: StateBook, reports: Reports, nowSeconds: number): void {
    if (this.storeBytes <= this.maxBytes) return;
    this.#file.compact(this.#store); // free pages first: often that is all
    while (this.storeBytes > this.maxBytes) {
      const dropped = reports.dropOldest();
      if (dropped === 0)
        throw new StoreError(
          `the store has ${this.storeBytes} bytes, more than max-store-size ${this.maxBytes}, and no report is left to drop`,
        );
      this.#log.warning(`traffic control: the store is full; ${dropped} report series were dropped`);
      this.#write(states, reports, nowSeconds);
      this.#file.compact(this.#store);
    }
  }

  [Symbol.dispose](): void {
    this.#store[Symbol.dispose]();
  }
}

/** The store has all of it. */
function settled(one: { dirty: boolean; journalDirty: boolean; journalFrom: number }): void {
  one.dirty = one.journalDirty = false;
  one.journalFrom = Infinity;
}

function put(part: Part, key: string, text: string): RecordChange {
  return { part, key, value: Buffer.from(text) };
}

function textOf(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("utf8");
}
