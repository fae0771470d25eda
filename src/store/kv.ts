/** One SQLite file of sealed records. What keeps two of them alike is backup.ts. */
import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { messageOf, StoreError } from "#core/errors.ts";
import { checkFile, createFile, identityOf } from "./file-safety.ts";
import { DamageError, seal, unseal } from "./sealed-blob.ts";

/** Somebody else changed the store; nothing was written. */
export class ConflictError extends StoreError {}
/** A file of another form or version; it is never overwritten. */
export class ForeignFileError extends StoreError {}

/** One record's new value; null: the record goes. */
export interface Change {
  readonly part: string;
  readonly key: string;
  readonly value: Uint8Array | null;
}

/** As in the file: sealed, or null where a record goes. */
export interface SealedChange {
  readonly part: string;
  readonly key: string;
  readonly blob: Uint8Array | null;
}

interface Root {
  readonly generation: number;
  readonly rows: Readonly<Record<string, number>>;
}

const SCHEMA_VERSION = 1n;
/** Whoever closes the file in order says what all of it looked like. Gone while the file is open. */
const SUM_SUFFIX = ".sum";
/** Of 4 KiB: where there is never time, the log is folded in by the commit that makes it longer than this. */
const MOST_LOG_PAGES = 4000;
/** What a log keeps of its length when it begins anew: bytes that are there already reach the medium sooner. */
const KEPT_LOG_BYTES = 4 * 1024 * 1024;

export class KeyValueFile implements Disposable {
  readonly path: string;
  /** The file is sound but is not as it was when it was closed: bytes without meaning have changed. */
  readonly wasTouched: boolean;
  readonly #parts: readonly string[];
  readonly #database: DatabaseSync;
  readonly #identity: string;
  /** Compiled once: a commit takes a dozen, each thousands of times. */
  readonly #statements = new Map<string, StatementSync>();
  /** Since the log was last folded in by `fold`. */
  #commits = 0;
  #root: Root;
  /** As it was read or written last. */
  #rootBlob: Uint8Array = new Uint8Array();

  private constructor(path: string, parts: readonly string[], wasTouched: boolean) {
    this.path = path;
    this.wasTouched = wasTouched;
    this.#parts = parts;
    this.#database = connect(path, new Set(["meta", ...parts]));
    this.#identity = identityOf(path);
    this.#root = { generation: 0, rows: {} };
  }

  /** Opens and decodes all of it. Throws `DamageError`, `ForeignFileError`, `StoreError`. */
  static open(path: string, parts: readonly string[]): KeyValueFile {
    checkFile(path);
    if (looksLikeJson(path))
      throw new ForeignFileError(
        `${path}: this is a JSON state file; weir users import takes its users over`,
      );
    const untouched = agreesWithSum(path);
    const file = orDamaged(path, () => new KeyValueFile(path, parts, !untouched));
    try {
      orDamaged(path, () => file.#verify());
      rmSync(path + SUM_SUFFIX, { force: true });
      return file;
    } catch (error) {
      file.#database.close();
      throw error;
    }
  }

  /** Goes on with a file that another thread has opened, decoded and closed: `root` is what it had last. */
  static resume(path: string, parts: readonly string[], root: Uint8Array): KeyValueFile {
    checkFile(path);
    const file = orDamaged(path, () => new KeyValueFile(path, parts, false));
    try {
      file.#refuseOthers(root);
      file.#rootBlob = root;
      file.#root = JSON.parse(unseal("root", root).toString()) as Root;
      return file;
    } catch (error) {
      file.#database.close();
      throw error;
    }
  }

  /** Makes an empty file of generation 0. */
  static create(path: string, parts: readonly string[], nowMs: number): KeyValueFile {
    rmSync(path + SUM_SUFFIX, { force: true });
    createFile(path);
    const file = orDamaged(path, () => new KeyValueFile(path, parts, false));
    orDamaged(path, () => file.#makeTables(["meta", ...parts]));
    const root = { generation: 0, rows: Object.fromEntries(parts.map((part) => [part, 0])) };
    file.#transaction(() => {
      file.#putMeta("schema", uint64(SCHEMA_VERSION));
      return { root, blob: file.#putRoot(root, nowMs) };
    });
    return file;
  }

  /** Grows with every commit. */
  get generation(): number {
    return this.#root.generation;
  }

  /** Tells what the file holds from everything that it held before. */
  get rootBlob(): Uint8Array {
    return this.#rootBlob;
  }

  /** Throws `DamageError`. */
  get(part: string, key: string): Buffer | null {
    const blob = this.blob(part, key);
    return blob === null ? null : unseal(key, blob);
  }

  blob(part: string, key: string): Uint8Array | null {
    return orDamaged(this.path, () => {
      const row = this.#statement(`SELECT value FROM "${part}" WHERE key = ?`).get(key);
      return row === undefined ? null : (row["value"] as Uint8Array);
    });
  }

  *blobs(part: string): Generator<readonly [key: string, blob: Uint8Array]> {
    const rows = this.#database.prepare(`SELECT key, value FROM "${part}" ORDER BY key`).iterate();
    for (const row of rows) yield [String(row["key"]), row["value"] as Uint8Array];
  }

  /**
   * Writes the changes and the new root as one transaction; on the medium when it returns. Throws `StoreError` with
   * nothing changed, `ConflictError` where the file is not the one that this process wrote last.
   */
  commit(changes: Iterable<SealedChange>, generation: number, nowMs: number): void {
    if (identityOf(this.path) !== this.#identity)
      throw new ConflictError(`${this.path}: the file was replaced or removed while in use`);
    this.#transaction(() => {
      this.#refuseOthers(this.#rootBlob);
      const rows = { ...this.#root.rows };
      for (const change of changes) rows[change.part] = (rows[change.part] ?? 0) + this.#apply(change);
      const next: Root = { generation, rows };
      return { root: next, blob: this.#putRoot(next, nowMs) };
    });
  }

  [Symbol.dispose](): void {
    if (!this.#database.isOpen) return;
    this.#database.close(); // folds the log in
    if (existsSync(`${this.path}-wal`)) return; // it could not; then there is nothing final to sum up
    writeFileSync(this.path + SUM_SUFFIX, digestOf(this.path), { mode: 0o600 });
  }

  /** Gives the space of deleted records back; as large as the file is, so long it takes. Throws `StoreError`. */
  compact(): void {
    orDamaged(this.path, () => this.#database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"));
  }

  /** Folds the log into the file, where at least so many commits wait there. Throws `StoreError`. */
  fold(leastCommits: number): void {
    if (this.#commits < leastCommits) return;
    this.#commits = 0;
    orDamaged(this.path, () => this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)"));
  }

  /** Closes it without the last word; harmless when it is closed. */
  abandon(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #refuseOthers(root: Uint8Array): void {
    if (!Buffer.from(root).equals(this.#metaBlob("root")))
      throw new ConflictError(`${this.path}: somebody else has written to it`);
  }

  /** By how many the rows of its part have grown. */
  #apply({ part, key, blob }: SealedChange): number {
    if (blob === null)
      return -Number(this.#statement(`DELETE FROM "${part}" WHERE key = ?`).run(key).changes);
    const updated = this.#statement(`UPDATE "${part}" SET value = ? WHERE key = ?`).run(blob, key);
    if (Number(updated.changes) === 1) return 0;
    this.#statement(`INSERT INTO "${part}" (key, value) VALUES (?, ?)`).run(key, blob);
    return 1;
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }

  #transaction(work: () => { readonly root: Root; readonly blob: Uint8Array }): void {
    const database = this.#database;
    try {
      database.exec("BEGIN IMMEDIATE");
      const { root, blob } = work();
      database.exec("COMMIT");
      this.#commits++;
      this.#root = root;
      this.#rootBlob = blob;
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      if (error instanceof StoreError) throw error;
      throw new StoreError(`${this.path}: cannot write: ${messageOf(error)}`, { cause: error });
    }
  }

  #makeTables(tables: readonly string[]): void {
    for (const table of tables)
      this.#database.exec(
        `CREATE TABLE IF NOT EXISTS "${table}" (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID`,
      );
  }

  /** Everything is there and decodes. A part that the file does not know of is made. */
  #verify(): void {
    const [check] = this.#database.prepare("PRAGMA integrity_check(1)").all();
    if (check?.["integrity_check"] !== "ok")
      throw new DamageError(`${this.path}: ${String(check?.["integrity_check"])}`);
    const schema = this.#meta("schema").readBigUInt64BE();
    if (schema !== SCHEMA_VERSION)
      throw new ForeignFileError(`${this.path}: schema ${schema}, this version knows ${SCHEMA_VERSION}`);
    this.#rootBlob = this.#metaBlob("root");
    const root = JSON.parse(this.#meta("root").toString()) as Root;
    this.#makeTables(this.#parts.filter((part) => root.rows[part] === undefined));
    for (const part of this.#parts) {
      let found = 0;
      for (const [key, blob] of this.blobs(part)) {
        unseal(key, blob);
        found++;
      }
      const wanted = root.rows[part] ?? 0;
      if (found !== wanted) throw new DamageError(`${this.path}: ${found} of ${wanted} records in ${part}`);
    }
    this.#root = root;
  }

  #meta(key: string): Buffer {
    return unseal(key, this.#metaBlob(key));
  }

  #metaBlob(key: string): Uint8Array {
    const row = this.#statement("SELECT value FROM meta WHERE key = ?").get(key);
    if (row === undefined) throw new DamageError(`${this.path}: no record ${key}`);
    return row["value"] as Uint8Array;
  }

  /** Answers with what it wrote. */
  #putRoot(root: Root, nowMs: number): Uint8Array {
    this.#putMeta("checkpoint", uint64(BigInt(Math.max(0, Math.trunc(nowMs)))));
    return this.#putMeta("root", Buffer.from(JSON.stringify(root)));
  }

  #putMeta(key: string, original: Uint8Array): Uint8Array {
    const blob = seal(key, original);
    this.#statement(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    ).run(key, blob);
    return blob;
  }
}

function connect(path: string, tables: ReadonlySet<string>): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    refuseForeign(path, database, tables); // before anything is written to it
    // Exclusive: nobody else writes, and no shared index file lies beside. What was deleted is overwritten: it was a secret.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    database.exec("PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF");
    database.exec(
      `PRAGMA wal_autocheckpoint = ${MOST_LOG_PAGES}; PRAGMA journal_size_limit = ${KEPT_LOG_BYTES}`,
    );
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A database with a table that is not ours is somebody else's, or another store's. Throws `ForeignFileError`. */
function refuseForeign(path: string, database: DatabaseSync, own: ReadonlySet<string>): void {
  const found = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const foreign = found.find(({ name }) => !own.has(String(name)));
  if (foreign !== undefined)
    throw new ForeignFileError(
      `${path}: a database of another kind, with a table ${String(foreign["name"])}`,
    );
}

/** https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;

/** What SQLite cannot read is damage, unless it says that it never came to read. */
function orDamaged<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff;
    const text = `${path}: ${messageOf(error)}`;
    if (code === SQLITE_BUSY) throw new StoreError(`${path}: in use by another process`, { cause: error });
    if (code === SQLITE_FULL || code === SQLITE_CANTOPEN) throw new StoreError(text, { cause: error });
    throw new DamageError(text, { cause: error });
  }
}

/** A database whose first byte was changed to a brace is a damaged database. */
function looksLikeJson(path: string): boolean {
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(MAGIC.length);
    const read = readSync(descriptor, bytes);
    return /^\{[\t\n\r -~]*$/.test(bytes.toString("latin1", 0, read)); // noise may begin with a brace, too
  } finally {
    closeSync(descriptor);
  }
}

/** What every SQLite file begins with: https://sqlite.org/fileformat.html §1.3.1 */
const MAGIC = Buffer.from("SQLite format 3\0");

/** True also where nobody summed up: after a crash the log is still there, and the records speak for themselves. */
function agreesWithSum(path: string): boolean {
  if (existsSync(`${path}-wal`) || !existsSync(path + SUM_SUFFIX)) return true;
  const sum = readFileSync(path + SUM_SUFFIX, "latin1");
  return sum.length !== 64 || sum === digestOf(path);
}

function digestOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}
