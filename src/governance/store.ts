/** What governance asks of a store. The sealed store of #store/backup.ts has this shape. */
export type Part = "policies" | "reports" | "journal";
export const PARTS: readonly Part[] = ["policies", "reports", "journal"];

export interface RecordChange {
  readonly part: Part;
  readonly key: string;
  /** Null: the record goes. */
  readonly value: Uint8Array | null;
}

/** Records by part and key. Everything throws `StoreError`; a commit that throws has changed nothing. */
export interface SeriesStore extends Disposable {
  entries(part: Part): Iterable<readonly [key: string, value: Uint8Array]>;
  commit(changes: Iterable<RecordChange>, options: { readonly backup: boolean }): void;
}

/** Where a store is, how large it is, and how it is opened. */
export interface StoreFile {
  open(): SeriesStore;
  /** Bytes on the medium, the write-ahead log included. */
  sizeBytes(): number;
  /** Makes the file as small as its contents. */
  compact(store: SeriesStore): void;
}

/** Keeps nothing: for a start at which no store could be opened, and for tests. */
export class MemoryStore implements SeriesStore {
  readonly parts = new Map<Part, Map<string, Uint8Array>>(PARTS.map((part) => [part, new Map()]));
  commits = 0;
  /** Set: the next commits fail with it. */
  failure: Error | null = null;

  entries(part: Part): Iterable<readonly [key: string, value: Uint8Array]> {
    return this.parts.get(part) ?? [];
  }

  commit(changes: Iterable<RecordChange>): void {
    if (this.failure !== null) throw this.failure;
    for (const { part, key, value } of changes) {
      const records = this.parts.get(part);
      if (value === null) records?.delete(key);
      else records?.set(key, value);
    }
    this.commits++;
  }

  [Symbol.dispose](): void {}
}
