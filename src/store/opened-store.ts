/** A store whose owner does not wait for the medium. */
import type { CommitOptions } from "./backup.ts";
import type { Change } from "./kv.ts";

export interface OpenedStore {
  readonly store: AsyncStore;
  /** Every record by part, in the order of the keys, as it was when the store was opened. */
  readonly records: ReadonlyMap<string, StoredRecords>;
}

export type StoredRecords = readonly (readonly [key: string, value: Buffer])[];

/** Everything happens in the order in which it was asked for. All rejections are `StoreError`s, with nothing changed. */
export interface AsyncStore {
  /** Settles when the changes are on the medium: in one transaction, with those of others that waited as well. */
  commit(changes: Iterable<Change>, options: CommitOptions): Promise<void>;
  /** Makes both files as small as their contents. */
  compact(): Promise<void>;
  /** Behind everything else; the lock is let go of even where it rejects. */
  close(): Promise<void>;
  /** The same for the end of the program: returns when it is done. Throws `StoreError`. */
  closeNow(): void;
}
