/** The state file of a node of a fleet: the last state of the users that was in force here. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Change } from "#store/kv.ts";
import type { AsyncStore } from "#store/opened-store.ts";
import type { Step } from "#users/changes.ts";
import { NO_TRAFFIC, type Traffic } from "#users/counters.ts";
import { encodeListener, encodeUser, LISTENERS, USERS } from "#users/records.ts";
import type { UserBook } from "#users/user-book.ts";
import type { UserRegistry } from "#users/user-registry.ts";

export class Snapshot {
  readonly #store: AsyncStore;
  readonly #registry: UserRegistry;
  readonly #log: Log;
  /** By listener, users whom the file does not have as the book has them: the next write takes them along. */
  readonly #owed = new Map<string, Set<string>>();

  constructor(store: AsyncStore, registry: UserRegistry, log: Log) {
    this.#store = store;
    this.#registry = registry;
    this.#log = log;
  }

  /** Never rejects: the database has what the file could not take, and the next write has it again. */
  async write(book: UserBook, steps: readonly Step[]): Promise<void> {
    const { listener } = book;
    const ids = this.#owed.get(listener) ?? new Set<string>();
    for (const { before, after } of steps) ids.add((after ?? before)?.id ?? "");
    const fresh = new Map(steps.map(({ after, traffic }) => [after?.id ?? "", traffic]));
    const changes: Change[] = [...ids].map((id) => this.#changeOf(book, id, fresh.get(id)));
    changes.push({ part: LISTENERS, key: listener, value: encodeListener(book) });
    this.#owed.set(listener, ids);
    try {
      await this.#store.commit(changes, { backup: true });
      this.#owed.delete(listener);
    } catch (error) {
      this.#log.warning(`fleet: users of ${listener} are not in the state file yet: ${messageOf(error)}`);
    }
  }

  /** The file was opened anew and may lack anything. */
  distrust(): void {
    for (const book of this.#registry.books.values())
      this.#owed.set(book.listener, new Set(book.users.keys()));
  }

  #changeOf(book: UserBook, id: string, fresh: Traffic | undefined): Change {
    const user = book.users.get(id);
    if (user === undefined) return { part: USERS, key: id, value: null };
    const traffic =
      fresh ?? this.#registry.counters.get(book.listener, id) ?? this.#registry.resting.get(id) ?? NO_TRAFFIC;
    return { part: USERS, key: id, value: encodeUser(book, user, traffic) };
  }
}
