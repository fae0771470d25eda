/** A store that survives damage: a primary file and a backup of the same form, each able to give the other back. */
import { messageOf } from "#core/errors.ts";
import { UndecidedError } from "./cut-log.ts";
import { checkFolder, lockStore } from "./file-safety.ts";
import { openBoth } from "./healing.ts";
import { HighMark } from "./high-mark.ts";
import type { Change, KeyValueFile, SealedChange } from "./kv.ts";
import {
  type StartedBackup,
  type FileWork,
  inThisThread,
  inThreadOf,
  type SecondFile,
} from "./second-file.ts";
import type { Link } from "./thread-messages.ts";
import { refuseForeignFiles } from "./own-file.ts";
import { seal, unseal, unsealAll } from "./sealed-blob.ts";
import type { StoreOptions } from "./store-options.ts";

export interface CommitOptions {
  /** Bring the backup up to date, too: then nothing that was acknowledged can be lost to one damaged file. */
  readonly backup: boolean;
}

export class Store implements Disposable {
  readonly #options: StoreOptions;
  readonly #lock: Disposable;
  /** For reading. */
  readonly #primary: KeyValueFile;
  /** The primary, as it is written. */
  #second: SecondFile;
  readonly #backup: KeyValueFile;
  /** Records that the backup does not have as the primary does. */
  readonly #behind = new Map<string, SealedChange>();
  /** Of the last commit. */
  #generation: number;
  /** Of the last attempt: two that fail differently in the two files must not look alike. */
  #attempt: number;
  /** What reached the backup only; the next commit repeats it. No more than there are records, however long it lasts. */
  #owed: ReadonlyMap<string, SealedChange> = new Map();
  #mark: HighMark | null = null;

  private constructor(options: StoreOptions, lock: Disposable, primary: KeyValueFile, backup: KeyValueFile) {
    this.#options = options;
    this.#lock = lock;
    this.#primary = primary;
    this.#second = inThisThread(primary);
    this.#backup = backup;
    this.#generation = this.#attempt = primary.generation;
    if (backup.generation !== primary.generation) this.#compare();
    if (this.#behind.size > 0)
      options.log.info(
        `${backup.path}: ${this.#behind.size} records are older than in ${primary.path}; the next change takes them along`,
      );
  }

  /**
   * Takes the newer of the two files that can be decoded whole and repairs the other, which is kept aside. Throws
   * `StoreError`: in use, readable by others, of another form, or damaged without a sound backup.
   */
  static open(options: StoreOptions): Store {
    const { path } = options;
    refuseForeignFiles(path, options.parts);
    checkFolder(path);
    const lock = lockStore(path);
    using undo = new DisposableStack();
    undo.use(lock);
    const [primary, backup] = openBoth(options, undo);
    const store = new Store(options, lock, primary, backup);
    if (options.isMarked === true)
      store.#mark = HighMark.open(options, primary.generation, backup.generation);
    undo.move();
    return store;
  }

  get generation(): number {
    return this.#generation;
  }

  /** Every record of a part in the order of its keys. Throws `DamageError`. */
  entries(part: string): Generator<readonly [key: string, value: Buffer]> {
    return unsealAll(this.#primary.blobs(part));
  }

  /** The same of the last commit, also while the primary is written in another thread. Throws `DamageError`. */
  *present(part: string): Generator<readonly [key: string, value: Buffer]> {
    const newer = new Map<string, Uint8Array | null>();
    for (const change of this.#behind.values()) if (change.part === part) newer.set(change.key, change.blob);
    for (const [key, blob] of this.#backup.blobs(part)) if (!newer.has(key)) yield [key, unseal(key, blob)];
    for (const [key, blob] of newer) if (blob !== null) yield [key, unseal(key, blob)];
  }

  /**
   * From here on the primary is written in another thread, at the same time as the backup in this one. Nothing can be
   * read any more. Throws `StoreError`.
   */
  writeAtOnce(link: Link): void {
    this.#second = inThreadOf(link, this.#primary);
  }

  /**
   * Writes what changed, nothing else, in one transaction; on the medium when it returns, which takes as long as the
   * medium does for a few pages. Throws `StoreError` with nothing changed, or `UndecidedError`.
   */
  commit(changes: Iterable<Change>, { backup }: CommitOptions): void {
    const sealed = new Map(this.#owed);
    for (const change of Array.from(changes, sealChange)) sealed.set(nameOf(change), change);
    const generation = ++this.#attempt;
    const nowMs = this.#options.nowMs();
    const started = this.#begin(sealed, generation, nowMs);
    if (!backup) {
      started.end();
      for (const [name, change] of sealed) this.#behind.set(name, change);
    } else {
      this.#backUp(sealed, generation, nowMs, started);
      const follows = this.#follow(sealed, generation, started);
      this.#mark?.note(generation);
      if (!follows) return;
    }
    this.#owed = new Map();
    this.#generation = generation;
  }

  /** Makes both files as small as their contents. Throws `StoreError` with the contents as they were. */
  compact(): void {
    this.#inBoth({ kind: "compact" }, () => this.#backup.compact());
  }

  /** Folds logs of at least so many commits into their files. Throws `StoreError`. */
  checkpointWal(leastCommits: number): void {
    this.#inBoth({ kind: "fold", leastCommits }, () => this.#backup.checkpointWal(leastCommits));
  }

  /** Throws where a file cannot be closed in order; the other and the lock are let go of all the same. */
  [Symbol.dispose](): void {
    using all = new DisposableStack();
    all.use(this.#lock);
    const closing = this.#second.begin({ kind: "close" });
    all.defer(() => closing.end());
    all.use(this.#backup);
    all.use(this.#mark);
  }

  #begin(sealed: ReadonlyMap<string, SealedChange>, generation: number, nowMs: number): StartedBackup {
    return this.#second.begin({ kind: "commit", changes: [...sealed.values()], generation, nowMs });
  }

  #inBoth(work: FileWork, inBackup: () => void): void {
    using all = new DisposableStack();
    const started = this.#second.begin(work);
    all.defer(() => started.end());
    inBackup();
  }

  /** The backup decides: where it refuses a change, the primary loses it again. */
  #backUp(
    sealed: ReadonlyMap<string, SealedChange>,
    generation: number,
    nowMs: number,
    started: StartedBackup,
  ): void {
    try {
      this.#backup.commit(new Map([...this.#behind, ...sealed]).values(), generation, nowMs);
      this.#behind.clear();
    } catch (error) {
      if (started.revoke()) this.#takeBack(sealed, nowMs, error);
      throw error;
    }
  }

  /** What the primary has written becomes again what it was: what the backup has, or is behind with. */
  #takeBack(sealed: ReadonlyMap<string, SealedChange>, nowMs: number, why: unknown): void {
    const generation = ++this.#attempt;
    try {
      const known = [...sealed].map(([name, { part, key }]): readonly [string, SealedChange] => [
        name,
        this.#behind.get(name) ?? { part, key, blob: this.#backup.blob(part, key) },
      ]);
      this.#begin(new Map(known), generation, nowMs).end();
      this.#generation = generation;
    } catch (error) {
      const { path } = this.#options;
      throw new UndecidedError(
        `${path}: the backup refuses a change that cannot be taken back: ${messageOf(why)}; ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  /** The backup has it, so it is committed whatever happens here. False: the primary did not take it. */
  #follow(sealed: ReadonlyMap<string, SealedChange>, generation: number, started: StartedBackup): boolean {
    try {
      started.end();
      return true;
    } catch (error) {
      if (this.#owed.size === 0)
        this.#options.log.warning(
          `only the backup takes changes, until this one can be written again: ${messageOf(error)}`,
        );
      this.#owed = sealed;
      this.#generation = generation;
      return false;
    }
  }

  /** Which records the backup has not got, from the bytes of both. */
  #compare(): void {
    for (const part of this.#options.parts) {
      const left = new Set<string>();
      for (const [key] of this.#backup.blobs(part)) left.add(key);
      for (const [key, blob] of this.#primary.blobs(part)) {
        left.delete(key);
        const own = this.#backup.blob(part, key);
        if (own === null || !Buffer.from(blob).equals(own))
          this.#behind.set(nameOf({ part, key }), { part, key, blob });
      }
      for (const key of left) this.#behind.set(nameOf({ part, key }), { part, key, blob: null });
    }
  }
}

function nameOf({ part, key }: { readonly part: string; readonly key: string }): string {
  return `${part}/${key}`;
}

function sealChange({ part, key, value }: Change): SealedChange {
  return { part, key, blob: value === null ? null : seal(key, value) };
}
