/** A store whose owner does not wait for the medium. */
import { StoreError } from "#core/errors.ts";
import type { CommitOptions } from "./backup.ts";
import type { StoreOptions } from "./store-options.ts";
import type { Change } from "./kv.ts";

/** The store has come to its end under a commit: it is in the file whole or not at all, and nobody knows which. */
export class InterruptedError extends StoreError {}
/** The store is not open at present; nothing was tried. */
export class UnavailableError extends StoreError {}

export interface OpenedStore {
  readonly store: AsyncStore;
  /** Every record by part, in the order of the keys, as it was when the store was opened. */
  readonly records: ReadonlyMap<string, StoredRecords>;
}

/** Where a store may come to its end while its owner goes on. */
export interface SupervisedOptions extends StoreOptions {
  /**
   * The store was opened anew: what was under way when it ended is in it whole or not at all, and nobody has been told
   * which. Resolves when its owner goes by these records; rejects where it cannot, then the store stays closed. Until it
   * settles no commit is taken. Absent: the owner writes values that do not depend on what was there.
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
