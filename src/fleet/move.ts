/** Users between the state file of a single node and the fleet's database. */
import type { ClientBase } from "pg";
import { StoreError } from "#core/errors.ts";
import type { Store } from "#store/backup.ts";
import type { Traffic } from "#users/counters.ts";
import { decodeState, encodeListener, encodeUser, LISTENERS, USERS } from "#users/records.ts";
import type { UserBook, UserRecord } from "#users/user-book.ts";
import { FleetError } from "./errors.ts";
import { proveSeal, publishListener, wholeListener } from "./listeners.ts";
import type { TokenSeal } from "./seal.ts";

export interface Moving {
  readonly seal: TokenSeal;
  /** What the audit log says of who did it. */
  readonly node: string;
  /** All is tried and nothing kept. */
  readonly isDry: boolean;
}

/** Listeners with the number of their users. */
export interface Moved {
  readonly done: ReadonlyMap<string, number>;
  /** These were there already. */
  readonly present: readonly string[];
}

/** One transaction: all listeners of the file, or none. Rejects with `FleetError`, `StoreError` and as the driver does. */
export async function importState(client: ClientBase, store: Store, moving: Moving): Promise<Moved> {
  const { books, traffic } = decodeState(store.entries(LISTENERS), store.entries(USERS));
  const done = new Map<string, number>();
  const present: string[] = [];
  await client.query("BEGIN");
  try {
    await client.query("SET LOCAL statement_timeout = 0");
    await proveSeal(client, moving.seal);
    for (const book of books.values())
      if (await publishListener(client, book, { ...moving, traffic }))
        done.set(book.listener, book.users.size);
      else present.push(book.listener);
    await client.query(moving.isDry ? "ROLLBACK" : "COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // the connection may be gone; then the server does it
    throw error;
  }
  return { done, present };
}

/** Fills an empty state file; one that holds the same revisions already stays. Rejects with `FleetError`, `StoreError`. */
export async function exportState(
  client: ClientBase,
  store: Store | null,
  { seal, isDry }: Moving,
): Promise<Moved> {
  const { rows } = await client.query<{ tag: string }>("SELECT tag FROM weir.listener ORDER BY tag");
  const present =
    store === null ? new Map<string, UserBook>() : decodeState(store.entries(LISTENERS), []).books;
  const counted = await totals(client);
  const books: UserBook[] = [];
  for (const { tag } of rows) {
    const found = await wholeListener(client, tag, seal);
    if (found === null) continue;
    const [fault] = found.faults;
    if (fault !== undefined) throw new FleetError(fault);
    const { id, protocol, revision } = found;
    const users = new Map<string, UserRecord>();
    for (const user of found.users.values()) if (user !== null) users.set(user.id, user);
    books.push({ id, listener: tag, protocol, revision, appliedRevision: revision, users });
  }
  const isSame = (book: UserBook) => present.get(book.listener)?.revision === book.revision;
  if (present.size > 0 && !(present.size === books.length && books.every(isSame)))
    throw new StoreError("the state file holds other users; name a file that is not there yet");
  const done = new Map(books.map(({ listener, users }) => [listener, users.size]));
  if (present.size > 0) return { done: new Map(), present: [...done.keys()] };
  if (isDry) return { done, present: [] };
  store?.commit(
    books.flatMap((book) => [
      { part: LISTENERS, key: book.listener, value: encodeListener(book) },
      ...[...book.users.values()].map((user) => {
        const traffic = counted.get(`${user.id} ${user.trafficGeneration}`) ?? NOTHING;
        return { part: USERS, key: user.id, value: encodeUser(book, user, traffic) };
      }),
    ]),
    { backup: true },
  );
  return { done, present: [] };
}

const NOTHING: Traffic = { uploadBytes: 0, downloadBytes: 0, usage: null };

interface TotalRow {
  readonly user_id: string;
  readonly generation: number;
  readonly upload: string;
  readonly download: string;
}

/** By user and generation. */
async function totals(client: ClientBase): Promise<ReadonlyMap<string, Traffic>> {
  const { rows } = await client.query<TotalRow>(
    "SELECT user_id, generation, upload, download FROM weir.totals(-1)",
  );
  return new Map(
    rows.map(({ user_id, generation, upload, download }) => [
      `${user_id} ${generation}`,
      { uploadBytes: Number(upload), downloadBytes: Number(download), usage: null },
    ]),
  );
}
