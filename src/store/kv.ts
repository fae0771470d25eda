/** One SQLite file of sealed records. What keeps two of them alike is backup.ts. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { messageOf, StoreError } from "#core/errors.ts";
import { cutLog } from "./cut-log.ts";
import { checkFile, createFile, identityOf } from "./file-safety.ts";
import { matchesCleanShutdown, writeCleanShutdown, clearCleanShutdown } from "./clean-shutdown.ts";
import { DamageError, seal, unseal, unsealAll } from "./sealed-blob.ts";
import { connect, createTable, ForeignFileError, orDamaged } from "./sqlite-file.ts";

/** Another program changed the store; nothing was written. */
export class ConflictError extends StoreError {}

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

/** Of the file: which tables there are, and what a record looks like. */
export const SCHEMA_VERSION = 1n;

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
    const wasTouched = !matchesCleanShutdown(path);
    return KeyValueFile.#begin(path, parts, wasTouched, (file) => {
      orDamaged(path, () => file.#verify());
      clearCleanShutdown(path);
    });
  }

  /** Continues with a file that another thread has opened, decoded and closed: `root` is the last state there. */
  static resume(path: string, parts: readonly string[], root: Uint8Array): KeyValueFile {
    checkFile(path);
    return KeyValueFile.#begin(path, parts, false, (file) => {
      file.#refuseOthers(root);
      file.#rootBlob = root;
      file.#root = JSON.parse(unseal("root", root).toString());
    });
  }

  /** Makes an empty file of generation 0; fails where there is a file. */
  static create(path: string, parts: readonly string[], nowMs: number): KeyValueFile {
    createFile(path);
    return KeyValueFile.#begin(path, parts, false, (file) => {
      orDamaged(path, () => file.#makeTables(["meta", ...parts]));
      const root = { generation: 0, rows: Object.fromEntries(parts.map((part) => [part, 0])) };
      file.#transaction(() => {
        file.#putMeta("schema", uint64(SCHEMA_VERSION));
        return { root, blob: file.#putRoot(root, nowMs) };
      });
    });
  }

  /** Nothing is left open where `work` throws. */
  static #begin(
    path: string,
    parts: readonly string[],
    wasTouched: boolean,
    work: (file: KeyValueFile) => void,
  ): KeyValueFile {
    const file = orDamaged(path, () => new KeyValueFile(path, parts, wasTouched));
    try {
      work(file);
      return file;
    } catch (error) {
      file.abandon();
      throw error;
    }
  }

  /** Grows with every commit. */
  get generation(): number {
    return this.#root.generation;
  }

  /** A blob that differs for every state that the file has ever had. */
  get rootBlob(): Uint8Array {
    return this.#rootBlob;
  }

  /** As it is stored, unlooked at; null: there is none. Throws `DamageError` where SQLite cannot read it. */
  blob(part: string, key: string): Uint8Array | null {
    return orDamaged(this.path, () => {
      const row = this.#statement(`SELECT value FROM "${part}" WHERE key = ?`).get(key);
      return row === undefined ? null : valueIn(row, this.path);
    });
  }

  *blobs(part: string): Generator<readonly [key: string, blob: Uint8Array]> {
    const rows = this.#database.prepare(`SELECT key, value FROM "${part}" ORDER BY key`).iterate();
    for (const row of rows) yield [String(row["key"]), valueIn(row, this.path)];
  }

  /**
   * Writes the changes and the new root as one transaction; on the medium when it returns. Throws `StoreError` with
   * nothing changed, also after a crash, `UndecidedError` where that cannot be had, `ConflictError` where the file is not the one that this process wrote last.
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
    writeCleanShutdown(this.path);
  }

  /** Gives the space of deleted records back; as large as the file is, so long it takes. Throws `StoreError`. */
  compact(): void {
    orDamaged(this.path, () => this.#database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"));
  }

  /** Folds the log into the file, where at least so many commits wait there. Throws `StoreError`. */
  checkpointWal(leastCommits: number): void {
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
      throw new ConflictError(`${this.path}: another program has written to it`);
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
      cutLog(database, this.path, error);
      if (error instanceof StoreError) throw error;
      throw new StoreError(`${this.path}: cannot write: ${messageOf(error)}`, { cause: error });
    }
  }

  #makeTables(tables: readonly string[]): void {
    for (const table of tables)
      this.#database.exec(createTable(table).replace("TABLE", "TABLE IF NOT EXISTS"));
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
    const root: Root = JSON.parse(this.#meta("root").toString());
    this.#makeTables(this.#parts.filter((part) => root.rows[part] === undefined));
    for (const part of this.#parts) {
      let found = 0;
      for (const _ of unsealAll(this.blobs(part))) found++;
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
    return valueIn(row, this.path);
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

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

function valueIn(row: Readonly<Record<string, unknown>>, path: string): Uint8Array {
  const { value } = row;
  if (!(value instanceof Uint8Array)) throw new DamageError(`${path}: a record is no blob`);
  return value;
}
