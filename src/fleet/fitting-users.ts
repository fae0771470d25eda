/**
 * Which of the users that the database has of a listener can be served beside one another: what one login has written there
 * must not cost other users, and what the state file takes must be readable at the next start.
 */
import { ApiError } from "#core/errors.ts";
import type { UserSupport } from "#core/protocol.ts";
import { BookIndex } from "#users/book-index.ts";
import { checkForListener, type UserBook, type UserRecord } from "#users/user-book.ts";
import type { FleetListener } from "./listeners.ts";

interface Fitting {
  /** Null: gone, or left out. */
  readonly users: ReadonlyMap<string, UserRecord | null>;
  /** Of the book with these. */
  readonly index: BookIndex;
  readonly faults: readonly string[];
}

/** Of two that cannot be told apart the one made first stays. */
export function fittingUsers(
  book: UserBook,
  { users, isWhole }: Pick<FleetListener, "users" | "isWhole">,
  support: UserSupport,
): Fitting {
  const known: ReadonlyMap<string, UserRecord> = isWhole ? new Map() : book.users;
  let index = isWhole ? BookIndex.of([], support) : (book.index ?? BookIndex.of(known.values(), support));
  for (const id of users.keys()) {
    const before = known.get(id);
    if (before !== undefined) index = index.with(before, null);
  }
  const fit = new Map(users);
  const faults: string[] = [];
  const come = [...users.values()].filter((user) => user !== null);
  for (const user of come.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1)))
    try {
      checkForListener(user, support);
      index.refuseDoubles(book.listener, user);
      index = index.with(null, user);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      fit.set(user.id, null);
      faults.push(`user ${user.id}: ${error.message}`);
    }
  return { users: fit, index, faults };
}
