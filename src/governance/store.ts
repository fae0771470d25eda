/** What governance asks of a store. The stores of #store/opened-store.ts have this shape. */
import type { Rollback } from "#core/rollback.ts";

export type Part = "policies" | "reports" | "journal";
export const PARTS: readonly Part[] = ["policies", "reports", "journal"];

export interface RecordChange {
  readonly part: Part;
  readonly key: string;
  /** Null: the record goes. */
  readonly value: Uint8Array | null;
}

/**
 * Records by part and key. Everything happens in the order in which it was asked for. All rejections are `StoreError`s;
 * a commit that rejects has changed nothing.
 */
export interface SeriesStore {
  /** Settles when it is on the medium. */
  commit(changes: Iterable<RecordChange>, options: { readonly backup: boolean }): Promise<void>;
  /** Makes the file as small as its contents. */
  compact(): Promise<void>;
  close(): Promise<void>;
  /** The same for the end of the program: done when it returns. Throws `StoreError`. */
  closeNow(): void;
}

export interface OpenedSeries {
  readonly store: SeriesStore;
  /** Every record by part, as it was when the store was opened. */
  readonly records: SeriesRecords;
  /** Both files were older than what had been acknowledged; absent or null: they were not, or it was accepted. */
  readonly rollback?: Rollback | null;
}

export type SeriesRecords = ReadonlyMap<string, Iterable<readonly [key: string, value: Uint8Array]>>;

/** Where a store is, how large it is, and how it is opened. */
export interface StoreFile {
  /** Rejects with `StoreError`. */
  open(): Promise<OpenedSeries>;
  /** Bytes on the medium, the write-ahead log included. */
  sizeBytes(): number;
}

/** Keeps nothing: for a start at which no store could be opened, and for tests. */
export class MemoryStore implements SeriesStore {
  readonly parts = new Map<Part, Map<string, Uint8Array>>(PARTS.map((part) => [part, new Map()]));
  commits = 0;
  /** Set: the next commits fail with it. */
  failure: Error | null = null;

  get records(): SeriesRecords {
    return new Map([...this.parts].map(([part, records]) => [part, [...records]] as const));
  }

  async commit(changes: Iterable<RecordChange>): Promise<void> {
    if (this.failure !== null) throw this.failure;
    for (const { part, key, value } of changes) {
      const records = this.parts.get(part);
      if (value === null) records?.delete(key);
      else records?.set(key, value);
    }
    this.commits++;
  }

  async compact(): Promise<void> {}
  async close(): Promise<void> {}
  closeNow(): void {}
}
