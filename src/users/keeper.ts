/** Writes users into the state file: a change before anybody sees it, counters some time after they have moved. */
import { ApiError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Store } from "#store/backup.ts";
import { type Change, ConflictError } from "#store/kv.ts";
import type { Traffic, UserCounter } from "./counters.ts";
import { encodeListener, encodeUser, LISTENERS, USERS } from "./records.ts";
import type { Roster } from "./roster.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

export interface KeeperEnv {
  readonly log: Log;
  /** Never goes back. */
  readonly monotonicMs: () => number;
}

/** Users written in one go by a checkpoint, so that the event loop is not held up: some 15 ms. */
const BATCH = 200;
/** How long the backup may lack counters; it never lacks a change. */
const BACKUP_MS = 5 * 60_000;

export class Keeper {
  readonly #store: Store;
  readonly #roster: Pick<Roster, "books" | "counters">;
  readonly #env: KeeperEnv;
  #backedUpAtMs: number;

  /** The store is the keeper's from now on. */
  constructor(store: Store, roster: Pick<Roster, "books" | "counters">, env: KeeperEnv) {
    this.#store = store;
    this.#roster = roster;
    this.#env = env;
    this.#backedUpAtMs = env.monotonicMs();
  }

  /** A book with one user as it will be; null: the user goes. Throws `StoreError`, `ApiError` 409. */
  keep(book: UserBook, id: string, user: UserRecord | null, traffic: Traffic): void {
    try {
      this.#store.commit(
        [
          { part: LISTENERS, key: book.listener, value: encodeListener(book) },
          { part: USERS, key: id, value: user === null ? null : encodeUser(book, user, traffic) },
        ],
        { backup: true },
      );
    } catch (error) {
      if (error instanceof ConflictError)
        throw new ApiError(409, "the state file was changed by somebody else", { cause: error });
      throw error;
    }
  }

  /** Some changes, and all counters that have moved. Throws `StoreError`. */
  keepAll(changes: readonly Change[]): void {
    const { counters } = this.#roster;
    this.#store.commit([...changes, ...this.#unsaved(counters.changed)], { backup: true });
    counters.saved([...counters.changed]);
  }

  /** Writes counters that have moved. Batches follow each other in turns of their own. Never throws. */
  checkpoint(): void {
    const { changed } = this.#roster.counters;
    const batch = [...changed].slice(0, BATCH);
    if (batch.length === 0) return;
    const nowMs = this.#env.monotonicMs();
    const backup = nowMs - this.#backedUpAtMs >= BACKUP_MS;
    if (!this.save(batch, { backup })) return;
    if (backup) this.#backedUpAtMs = nowMs;
    if (changed.size > 0 && batch.length === BATCH) setImmediate(() => this.checkpoint());
  }

  /** False: not written, the counters stay changed. */
  save(counters: readonly UserCounter[], options: { readonly backup: boolean }): boolean {
    try {
      this.#store.commit(this.#unsaved(counters), options);
      this.#roster.counters.saved(counters);
      return true;
    } catch (error) {
      this.#env.log.warning(`traffic of users is not saved, it is tried again: ${messageOf(error)}`);
      return false;
    }
  }

  /** Writes everything and lets go of the file. Never throws. */
  close(): void {
    const { counters } = this.#roster;
    try {
      this.keepAll([]);
    } catch (error) {
      this.#env.log.error(`the last traffic of users is lost: ${messageOf(error)}`);
    }
    try {
      this.#store[Symbol.dispose]();
    } catch (error) {
      this.#env.log.error(`closing the state file of users: ${messageOf(error)}`);
    }
    counters.saved([...counters.changed]); // a checkpoint that was put off finds nothing to do
  }

  #unsaved(
    counters: Iterable<{ readonly listener: string; readonly id: string } & Traffic>,
  ): readonly Change[] {
    return Array.from(counters).flatMap((counter) => {
      const book = this.#roster.books.get(counter.listener);
      const user = book?.users.get(counter.id);
      if (book === undefined || user === undefined) return [];
      return [{ part: USERS, key: user.id, value: encodeUser(book, user, counter) }];
    });
  }
}
