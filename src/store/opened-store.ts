/** A store whose owner does not wait for the medium. */
import { StoreError } from "#core/errors.ts";
import type { CommitOptions } from "./backup.ts";
import type { StoreOptions } from "./store-options.ts";
import type { Change } from "./kv.ts";

/** The store ended during a commit: the change is in the file whole or not at all, and which of both is unknown. */
export class InterruptedError extends StoreError {}
/** The store is not open at present; nothing was tried. */
export class UnavailableError extends StoreError {}

export interface OpenedStore {
  readonly store: AsyncStore;
  /** Every record by part, in the order of the keys, as it was when the store was opened. */
  readonly records: ReadonlyMap<string, StoredRecords>;
}

/** Options of a store that may end while its owner continues. */
export interface SupervisedOptions extends StoreOptions {
  /**
   * Called after the store was opened anew: the commit that was interrupted is in it whole or not at all, and its
   * caller was not told which. Resolves when the owner has adopted these records; rejects when it cannot, then the
   * store stays closed. No commit is accepted until it settles. Absent: the owner writes values that do not depend on
   * earlier ones.
   */
  readonly agree?: (records: OpenedStore["records"]) => Promise<void>;
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

/** A store whose files another process may have for a while. */
export interface LendableStore extends SnapshotStore {
  /**
   * Lets go of the files behind everything that was asked for; from then on every commit is refused, and closing does
   * nothing. Rejects with `StoreError` where they are not open, or the last commits could not be written.
   */
  release(): Promise<void>;
  /** Takes them back after `release`. Rejects with what opening does: then it may be called once more. */
  reclaim(): Promise<void>;
}

/** All records of a store at one moment, by part. */
export type Snapshot = ReadonlyMap<string, StoredRecords>;

export interface SnapshotStore extends AsyncStore {
  /** What it holds behind every commit that was asked for before. */
  snapshot(): Promise<Snapshot>;
}
