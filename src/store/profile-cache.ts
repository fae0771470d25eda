import { renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { ApiError, messageOf, StoreError, errnoOf } from "#core/errors.ts";
import type { Choices } from "#core/group.ts";
import type { Log } from "#core/log.ts";
import { makeFolder } from "#platform/make-folder.ts";
import { sqliteCodeOf } from "./sqlite-code.ts";
import { headOf } from "./own-file.ts";

/** Private areas of the cache file. */
export type Bucket = "selected" | "storage" | "fakeip" | "fakeip6" | "etag" | "subscriptioninfo" | "written";

export type CacheChoices = Readonly<Record<"selected" | "storage", Readonly<Record<string, string>>>>;

type Change = readonly [key: string, value: string | null];

/** After a write that failed the next one is not tried sooner: it takes everything along. */
const RETRY_MS = 60_000;

const TABLE = "CREATE TABLE entry (bucket TEXT, key TEXT, value TEXT, PRIMARY KEY (bucket, key)) STRICT";

/**
 * The profile cache: conveniences that survive a restart. Losing it costs a choice, never data, so every fault is a
 * warning and the cache continues in memory; what could not be written goes with a later write. The file is made at the
 * first write. A file that is not a profile cache is left alone.
 */
export class ProfileCache implements Choices, Disposable {
  readonly #path: string;
  readonly #log: Log;
  readonly #nowMs: () => number;
  readonly #memory = new Map<string, Map<string, string>>();
  #database: DatabaseSync | null = null;
  /** False: what the file holds could not be read, so it is left alone. */
  #usable = true;
  /** Another process has the file. */
  #isLent = false;
  /** There was no file at the start. */
  #isNew = false;
  /** The file lacks more than what changes now. */
  #isBehind = false;
  #failedAtMs = -Infinity;

  constructor(path: string, log: Log, nowMs: () => number = () => performance.now()) {
    this.#path = path;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#load();
  }

  /** Takes choices over from another program where there is no file yet; it is made with the first choice made here. */
  adopt(selections: ReadonlyMap<string, string>): void {
    if (!this.#isNew) return;
    for (const [group, member] of selections) this.#bucket("selected").set(group, member);
    this.#isBehind = selections.size > 0;
  }

  get(bucket: Bucket, key: string): string | null {
    return this.#bucket(bucket).get(key) ?? null;
  }

  /** Number of keys of a bucket. */
  count(bucket: Bucket): number {
    return this.#bucket(bucket).size;
  }

  set(bucket: Bucket, key: string, value: string): void {
    this.setAll(bucket, [[key, value]]);
  }

  /** Keys and values of a bucket, in no order; what changes while they are read may be missing. */
  entries(bucket: Bucket): Iterable<readonly [key: string, value: string]> {
    return this.#bucket(bucket);
  }

  /** What people have chosen, and dashboards stored; nothing that is learnt anew. */
  choices(): CacheChoices {
    const of = (bucket: Bucket) => Object.fromEntries(this.#bucket(bucket));
    return { selected: of("selected"), storage: of("storage") };
  }

  /** Many changes in one transaction, of one key the last; null deletes. What is so already costs nothing. */
  setAll(bucket: Bucket, changes: Iterable<Change>): void {
    const fresh = [...new Map(changes)].filter(([key, value]) => this.get(bucket, key) !== value);
    if (fresh.length === 0) return;
    for (const [key, value] of fresh)
      if (value === null) this.#bucket(bucket).delete(key);
      else this.#bucket(bucket).set(key, value);
    if (this.#nowMs() - this.#failedAtMs >= RETRY_MS) this.#save(bucket, fresh);
  }

  delete(bucket: Bucket, key: string): void {
    this.setAll(bucket, [[key, null]]);
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

  /** Another process gets the file: what changes from now on is kept in memory alone. */
  release(): void {
    if (this.#isBehind && !this.#isLent) this.#save("selected", []);
    this.#isLent = true;
    this.#close();
  }

  /** Before anything is chosen. Throws `ApiError` 503 while another process has the file: the choice would be forgotten. */
  demand(): void {
    if (this.#isLent) throw new ApiError(503, "another process of weir is taking over");
  }

  /** Takes it back; what has changed meanwhile is written. */
  reclaim(): void {
    if (!this.#isLent) return;
    this.#isLent = false;
    if (this.#isBehind) this.#save("selected", []);
  }

  [Symbol.dispose](): void {
    if (this.#isLent) return;
    if (this.#isBehind && Number.isFinite(this.#failedAtMs)) this.#save("selected", []);
    this.#usable = false;
    this.#close();
  }

  /** Of a file also those that this version does not know: they are written back with the others. */
  #bucket(name: string): Map<string, string> {
    const known = this.#memory.get(name) ?? new Map<string, string>();
    this.#memory.set(name, known);
    return known;
  }

  #load(): void {
    try {
      const mark = markOf(this.#path);
      this.#isNew = mark === "missing";
      if (mark === "strange") throw new StoreError("it is no profile cache and is left as it is");
      if (mark === "own") this.#read();
    } catch (error) {
      this.#usable = false;
      this.#log.warning(`cannot read ${this.#path}, choices last until the next start: ${messageOf(error)}`);
    }
  }

  #read(): void {
    try {
      this.#take(this.#open());
    } catch (error) {
      if (isDamaged(error)) this.#throwAway(error);
      else this.#readAsItLies(error);
    }
  }

  /** A full disk has no room for what SQLite keeps beside a file that it may write to. */
  #readAsItLies(why: unknown): void {
    const url = pathToFileURL(this.#path);
    url.searchParams.set("immutable", "1");
    using database = new DatabaseSync(url, { readOnly: true });
    this.#take(database);
    this.#log.warning(
      `${this.#path} can only be read, choices are kept in memory until it can be written: ${messageOf(why)}`,
    );
  }

  #take(database: DatabaseSync): void {
    for (const row of database.prepare("SELECT bucket, key, value FROM entry").all())
      this.#bucket(String(row["bucket"])).set(String(row["key"]), String(row["value"]));
  }

  #save(bucket: Bucket, changes: readonly Change[]): void {
    if (!this.#usable) return;
    if (this.#isLent) return void (this.#isBehind = true);
    try {
      this.#tryToSave(bucket, changes);
      this.#isBehind = false;
      this.#failedAtMs = -Infinity;
    } catch (error) {
      if (!this.#isBehind)
        this.#log.warning(
          `cannot write ${this.#path}, choices are kept in memory until it can be: ${messageOf(error)}`,
        );
      this.#isBehind = true;
      this.#failedAtMs = this.#nowMs();
    }
  }

  #tryToSave(bucket: Bucket, changes: readonly Change[]): void {
    try {
      this.#write(bucket, changes, this.#isBehind);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      this.#throwAway(error);
      this.#write(bucket, changes, true);
    }
  }

  /** `all`: everything there is, in place of what the file has. */
  #write(bucket: Bucket, changes: readonly Change[], all: boolean): void {
    const database = this.#open();
    try {
      const put = database.prepare("INSERT OR REPLACE INTO entry (bucket, key, value) VALUES (?, ?, ?)");
      const remove = database.prepare("DELETE FROM entry WHERE bucket = ? AND key = ?");
      database.exec("BEGIN");
      if (all) {
        database.exec("DELETE FROM entry");
        for (const [name, entries] of this.#memory)
          for (const [key, value] of entries) put.run(name, key, value);
      } else
        for (const [key, value] of changes)
          if (value === null) remove.run(bucket, key);
          else put.run(bucket, key, value);
      database.exec("COMMIT");
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  #open(): DatabaseSync {
    if (this.#database !== null) return this.#database;
    const mark = markOf(this.#path);
    if (mark === "strange") throw new StoreError("something else has been put there");
    if (mark === "missing") this.#make();
    const database = new DatabaseSync(this.#path);
    try {
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    return database;
  }

  /** Under another name first: an empty file, as a full disk or a kill leaves it, would be taken for one of others. */
  #make(): void {
    makeFolder(dirname(this.#path));
    const made = `${this.#path}.new`;
    removeDatabase(made); // of a process that was killed
    try {
      using database = new DatabaseSync(made);
      database.exec(TABLE); // before there is a log: its text in the file itself is the mark
      database.close();
      renameSync(made, this.#path);
    } catch (error) {
      removeDatabase(made);
      throw error;
    }
  }

  #close(): void {
    this.#database?.close();
    this.#database = null;
  }

  /** It is made anew at the next write. */
  #throwAway(error: unknown): void {
    this.#log.warning(`${this.#path} is damaged and is made anew: ${messageOf(error)}`);
    this.#close();
    removeDatabase(this.#path);
  }
}

function removeDatabase(path: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

function markOf(path: string): "missing" | "own" | "strange" {
  let head: ReturnType<typeof headOf>;
  try {
    head = headOf(path);
  } catch (error) {
    if (errnoOf(error) === "ENOTDIR") return "missing"; // making it says what is in the way
    throw error;
  }
  if (head === null) return "missing";
  return typeof head !== "string" && head.includes(TABLE) ? "own" : "strange";
}

/** SQLITE_CORRUPT, SQLITE_NOTADB: https://sqlite.org/rescode.html */
const DAMAGED: ReadonlySet<number> = new Set([11, 26]);

function isDamaged(error: unknown): boolean {
  return DAMAGED.has(sqliteCodeOf(error) & 0xff);
}
