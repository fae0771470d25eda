/** The users of one state file, which is the only place where they are. */
import { ApiError, messageOf, StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { withoutFolders } from "#core/places.ts";
import { type Change, ConflictError } from "#store/kv.ts";
import { type AsyncStore, InterruptedError, UnavailableError } from "#store/opened-store.ts";
import type { Traffic, UserCounter } from "./counters.ts";
import type { UserHistory } from "./history.ts";
import { HISTORY, historyChange, removedChange } from "./history-records.ts";
import { encodeListener, encodeUser, LISTENERS, USERS } from "./records.ts";
import type { UserRegistry } from "./user-registry.ts";
import type { UserBook, UserRecord } from "./user-book.ts";
import type { UserRepository } from "./user-repository.ts";

type Registry = Pick<UserRegistry, "books" | "counters" | "removed" | "settled">;

/**
 * Counters grow while they are being written. So they count as saved when they are encoded, and as changed again where the
 * write failed. The users of that listener must not be changed otherwise meanwhile.
 */
export class StateRepository implements UserRepository {
  readonly #store: AsyncStore;
  readonly #registry: Registry;
  readonly #log: Log;
  readonly #path: string;
  readonly #onSaved: (counters: readonly UserCounter[]) => void;

  /**
   * The store, the file at `path`, is the keeper's from now on. `onSaved` is told which counters count as unchanged from
   * then on.
   */
  constructor(
    store: AsyncStore,
    path: string,
    registry: Registry,
    log: Log,
    onSaved: (counters: readonly UserCounter[]) => void = () => {},
  ) {
    this.#onSaved = onSaved;
    this.#path = path;
    this.#store = store;
    this.#registry = registry;
    this.#log = log;
  }

  async refresh(): Promise<void> {}

  async keep(book: UserBook, id: string, user: UserRecord | null, traffic: Traffic): Promise<void> {
    const { history = null } = traffic;
    const row = this.#rowOf(book, id, user, history);
    const changes = [
      { part: LISTENERS, key: book.listener, value: encodeListener(book) },
      { part: USERS, key: id, value: user === null ? null : encodeUser(book, user, traffic) },
      ...row,
    ];
    // A row that says that the user has gone is to be replaced should he stay.
    if (history !== null && row.length > 0) history.isRowStale = user === null;
    try {
      await this.#store.commit(changes, { backup: true });
    } catch (error) {
      if (history !== null && row.length > 0) history.isRowStale = true;
      throw answerFor(error, this.#path, this.#log);
    }
  }

  async takeBack(_: UserBook, book: UserBook, id: string, user: UserRecord | null, traffic: Traffic) {
    await this.keep(book, id, user, traffic);
    return book;
  }

  async keepAll(changes: readonly Change[]): Promise<void> {
    const moved = [...this.#registry.counters.changed];
    await this.#write([...changes, ...this.#taken(moved)], { backup: true }, moved);
  }

  async save(counters: readonly UserCounter[], options: { readonly backup: boolean }): Promise<boolean> {
    try {
      await this.#write(this.#taken(counters), options, counters);
      return true;
    } catch (error) {
      this.#log.warning(`traffic of users is not saved, it is tried again: ${messageOf(error)}`);
      return false;
    }
  }

  async saveLast(counters: readonly UserCounter[]): Promise<void> {
    if (counters.length > 0) await this.save(counters, { backup: true });
  }

  async close(): Promise<void> {
    const written = this.keepAll([]);
    const closed = this.#store.close();
    await written.catch(this.#lost);
    await closed.catch(this.#unclosed);
  }

  closeNow(): void {
    void this.keepAll([]).catch(this.#lost);
    try {
      this.#store.closeNow();
    } catch (error) {
      this.#unclosed(error);
    }
  }

  readonly #lost = (error: unknown): void =>
    this.#log.error(`the last traffic of users is lost: ${messageOf(error)}`);

  readonly #unclosed = (error: unknown): void =>
    this.#log.error(`closing the state file of users: ${messageOf(error)}`);

  async #write(
    changes: readonly Change[],
    options: { readonly backup: boolean },
    counters: readonly UserCounter[],
  ): Promise<void> {
    const doomed = [...this.#registry.removed.doomed];
    const rows = doomed.map((key): Change => ({ part: HISTORY, key, value: null }));
    try {
      await this.#store.commit([...changes, ...rows], options);
      this.#registry.removed.forget(doomed);
    } catch (error) {
      this.#registry.counters.changedAgain(counters);
      throw error;
    }
  }

  /** Of the history, what the file has not; none: it has all of it. */
  #rowOf(
    book: UserBook,
    id: string,
    user: UserRecord | null,
    history: UserHistory | null,
  ): readonly Change[] {
    if (history === null || history.isEmpty) return [];
    if (user !== null) return history.isRowStale ? [historyChange(id, history)] : [];
    const removedAtMs = this.#registry.settled.nowSeconds() * 1000;
    return [removedChange(id, { listener: book.listener, removedAtMs, history })];
  }

  /** As they are now; from here on they are saved. */
  #taken(counters: readonly UserCounter[]): readonly Change[] {
    const changes = counters.flatMap((counter) => {
      const book = this.#registry.books.get(counter.listener);
      const user = book?.users.get(counter.id);
      if (book === undefined || user === undefined) return [];
      const row = this.#rowOf(book, user.id, user, counter.history);
      if (counter.history !== null) counter.history.isRowStale = false;
      return [{ part: USERS, key: user.id, value: encodeUser(book, user, counter) }, ...row];
    });
    this.#onSaved(counters);
    this.#registry.counters.saved(counters);
    return changes;
  }
}

/** An error with a status where the client can act on it, or must not believe that nothing happened. */
function answerFor(cause: unknown, path: string, log: Log): unknown {
  if (cause instanceof ConflictError)
    return new ApiError(409, "the state file was changed by another program", { cause });
  if (cause instanceof UnavailableError)
    return new ApiError(500, "the state file is being opened again; nothing was changed", { cause });
  if (cause instanceof InterruptedError)
    return new ApiError(500, "writing was interrupted; the change is in force soon, or was not made", {
      cause,
    });
  if (!(cause instanceof StoreError)) return cause;
  const reason = withoutFolders(cause.message, path);
  log.error(`a change of users was not written: ${cause.message}`);
  return new ApiError(500, `not written, everything is as before: ${reason}`, { cause });
}
