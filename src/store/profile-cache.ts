import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "#core/errors.ts";
import type { Choices } from "#core/group.ts";
import type { Log } from "#core/log.ts";

/** Private areas of the cache file. */
export type Bucket = "selected" | "storage" | "fakeip" | "fakeip6" | "etag" | "subscriptioninfo";

/**
 * The profile cache (`cache.db` in the home directory): conveniences that survive a restart. Losing it costs a choice,
 * never data, so every fault is a warning and the cache goes on in memory. The file is made at the first write.
 */
export class ProfileCache implements Choices, Disposable {
  readonly #path: string;
  readonly #log: Log;
  readonly #memory = new Map<string, string>();
  #database: DatabaseSync | null = null;
  #usable = true;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    if (existsSync(path)) this.#attempt("read", () => this.#load());
  }

  get(bucket: Bucket, key: string): string | null {
    return this.#memory.get(`${bucket}/${key}`) ?? null;
  }

  /** Number of keys of a bucket. */
  count(bucket: Bucket): number {
    let found = 0;
    for (const key of this.#memory.keys()) if (key.startsWith(`${bucket}/`)) found++;
    return found;
  }

  set(bucket: Bucket, key: string, value: string): void {
    if (this.get(bucket, key) === value) return;
    this.#memory.set(`${bucket}/${key}`, value);
    this.#attempt("write", () =>
      this.#open()
        .prepare("INSERT OR REPLACE INTO entry (bucket, key, value) VALUES (?, ?, ?)")
        .run(bucket, key, value),
    );
  }

  /** Keys and values of a bucket, in no order. */
  entries(bucket: Bucket): readonly (readonly [key: string, value: string])[] {
    const prefix = `${bucket}/`;
    return [...this.#memory]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, value]) => [key.slice(prefix.length), value]);
  }

  /** Many changes in one transaction, of one key the last; null deletes. What is so already costs nothing. */
  setAll(bucket: Bucket, changes: Iterable<readonly [key: string, value: string | null]>): void {
    const fresh = [...new Map(changes)].filter(([key, value]) => this.get(bucket, key) !== value);
    if (fresh.length === 0) return;
    for (const [key, value] of fresh)
      if (value === null) this.#memory.delete(`${bucket}/${key}`);
      else this.#memory.set(`${bucket}/${key}`, value);
    this.#attempt("write", () => {
      const database = this.#open();
      const put = database.prepare("INSERT OR REPLACE INTO entry (bucket, key, value) VALUES (?, ?, ?)");
      const remove = database.prepare("DELETE FROM entry WHERE bucket = ? AND key = ?");
      database.exec("BEGIN");
      for (const [key, value] of fresh)
        if (value === null) remove.run(bucket, key);
        else put.run(bucket, key, value);
      database.exec("COMMIT");
    });
  }

  delete(bucket: Bucket, key: string): void {
    if (!this.#memory.delete(`${bucket}/${key}`)) return;
    this.#attempt("write", () =>
      this.#open().prepare("DELETE FROM entry WHERE bucket = ? AND key = ?").run(bucket, key),
    );
  }

  selected(group: string): string | null {
    return this.get("selected", group);
  }

  select(group: string, member: string): void {
    this.set("selected", group, member);
  }

  unselect(group: string): void {
    this.delete("selected", group);
  }

  [Symbol.dispose](): void {
    this.#database?.close();
    this.#database = null;
    this.#usable = false;
  }

  #load(): void {
    for (const row of this.#open().prepare("SELECT bucket, key, value FROM entry").all())
      this.#memory.set(`${row["bucket"]}/${row["key"]}`, String(row["value"]));
  }

  #open(): DatabaseSync {
    if (this.#database !== null) return this.#database;
    mkdirSync(dirname(this.#path), { recursive: true });
    const database = new DatabaseSync(this.#path);
    try {
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
      database.exec(
        "CREATE TABLE IF NOT EXISTS entry (bucket TEXT, key TEXT, value TEXT, PRIMARY KEY (bucket, key)) STRICT",
      );
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    return database;
  }

  /** A file that is no database is thrown away once and made anew; anything else ends persistence for this run. */
  #attempt(verb: string, work: () => void): void {
    if (!this.#usable) return;
    try {
      work();
    } catch (error) {
      if ((error as { errcode?: number }).errcode === SQLITE_NOTADB) {
        this.#log.warning(`${this.#path} is damaged and is made anew: ${messageOf(error)}`);
        for (const suffix of ["", "-wal", "-shm"]) rmSync(this.#path + suffix, { force: true });
        return;
      }
      this.#usable = false;
      this.#log.warning(
        `cannot ${verb} ${this.#path}, choices last until the next start: ${messageOf(error)}`,
      );
    }
  }
}

/** https://sqlite.org/rescode.html#notadb */
const SQLITE_NOTADB = 26;
