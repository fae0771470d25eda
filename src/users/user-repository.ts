/**
 * Where users are kept: a change before it is published, counters some time after they have moved. There are two: the
 * state file of a single node, and a fleet's database with the state file as its snapshot.
 */
import type { Change } from "#store/kv.ts";
import type { Traffic, UserCounter } from "./counters.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

/** What a change does, as an audit log names it. */
export type ChangeKind = "create" | "update" | "delete" | "reset-traffic" | "rotate-subscription";

export interface UserRepository {
  /**
   * Before a change of the listener is judged, in its queue: the registry gets what others have made of its users. Null:
   * of all listeners, outside of a queue. `revision` is the one that the change names: where the registry has it, `keep` itself
   * may find out whether others have gone on from it. Rejects with `ApiError` 503 where it cannot be told.
   */
  refresh(listener: string | null, revision: number | null): Promise<void>;
  /**
   * A book with one user as it will be; null: the user goes. Rejects with `StoreError`, `ApiError`; with 409, or
   * 404 for a user who is gone, the registry has what others have made of it.
   */
  keep(
    book: UserBook,
    id: string,
    user: UserRecord | null,
    traffic: Traffic,
    kind: ChangeKind,
  ): Promise<void>;
  /** Makes `kept`, which a listener did not take, what `book` was. Answers with the book then in force. */
  takeBack(
    kept: UserBook,
    book: UserBook,
    id: string,
    user: UserRecord | null,
    traffic: Traffic,
  ): Promise<UserBook>;
  /** Some changes, and all counters that have moved. Rejects with `StoreError`. */
  keepAll(changes: readonly Change[]): Promise<void>;
  /** False: not written, the counters stay changed. */
  save(counters: readonly UserCounter[], options: { readonly backup: boolean }): Promise<boolean>;
  /** Writes counters that no longer change. Never rejects. */
  saveLast(counters: readonly UserCounter[]): Promise<void>;
  /** Writes what has been counted by the time of the call, and closes the file. Never rejects. */
  close(): Promise<void>;
  /** The same, done when it returns. Never throws. */
  closeNow(): void;
}
