/**
 * A SQLite file as a store opens it: exclusively, with a log, refusing foreign files; and the meaning of SQLite's
 * errors.
 */
import { DatabaseSync } from "node:sqlite";
import { messageOf, StoreError } from "#core/errors.ts";
import { sqliteCodeOf } from "./sqlite-code.ts";
import { DamageError } from "./sealed-blob.ts";

/** A file of another form or version; it is never overwritten. */
export class ForeignFileError extends StoreError {}

/** Of 4 KiB: where there is never time, the log is folded in by the commit that makes it longer than this. */
const MOST_LOG_PAGES = 4000;
/** What a log keeps of its length when it begins anew: bytes that are there already reach the medium sooner. */
const KEPT_LOG_BYTES = 4 * 1024 * 1024;

/** `tables`: all that may be in it. Throws `ForeignFileError`, and what SQLite does. */
export function connect(path: string, tables: ReadonlySet<string>): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Before anything is read: no other process may write, and no shared index file is made.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF");
    refuseForeign(path, database, tables); // before anything is written to it
    // What was deleted is overwritten: it was a secret.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON");
    database.exec(
      `PRAGMA wal_autocheckpoint = ${MOST_LOG_PAGES}; PRAGMA journal_size_limit = ${KEPT_LOG_BYTES}`,
    );
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A database with a table that is not ours is foreign, or another store's. */
function refuseForeign(path: string, database: DatabaseSync, own: ReadonlySet<string>): void {
  const found = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const foreign = found.find(({ name }) => !own.has(String(name)));
  if (foreign !== undefined)
    throw new ForeignFileError(
      `${path}: a database of another kind, with a table ${String(foreign["name"])}`,
    );
}

/** What every SQLite file begins with: https://sqlite.org/fileformat.html §1.3.1 */
export const SQLITE_MAGIC = Buffer.from("SQLite format 3\0");

/** As every table of a store is made; this text in the schema is the mark of our files. */
export function createTable(name: string): string {
  return `CREATE TABLE "${name}" (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID`;
}

/** https://sqlite.org/rescode.html */
const BUSY = 5;
/** No memory, read-only, full, cannot be opened. */
const NEVER_READ: ReadonlySet<number> = new Set([7, 8, 13, 14]);
const IO_ERROR = 10;
/** Of these `IO_ERROR`s the bytes are to blame: they cannot be read, there are too few, or they contradict themselves. */
const BAD_BYTES: ReadonlySet<number> = new Set([266, 522, 8202, 8458]);

/** Another process has the file open. */
export function isBusy(error: unknown): boolean {
  return (sqliteCodeOf(error) & 0xff) === BUSY;
}

/** What SQLite cannot read is damage, unless it says that it never came to read. Throws `DamageError`, `StoreError`. */
export function orDamaged<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    if (isBusy(error)) throw new StoreError(`${path}: in use by another process`, { cause: error });
    const text = `${path}: ${messageOf(error)}`;
    const code = sqliteCodeOf(error);
    if (NEVER_READ.has(code & 0xff) || ((code & 0xff) === IO_ERROR && !BAD_BYTES.has(code)))
      throw new StoreError(text, { cause: error });
    throw new DamageError(text, { cause: error });
  }
}
