/** Checks who else could read or change a store, and which process has it open. */
import { closeSync, existsSync, lstatSync, openSync, statSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf, StoreError } from "#core/errors.ts";
import { makeFolder } from "#platform/make-folder.ts";
import { isBusy } from "./sqlite-file.ts";

const IS_UNIX = process.platform !== "win32";

/** Makes the folder where it is missing. Throws `StoreError` where others could put another file in its place. */
export function checkFolder(path: string): void {
  makeFolder(dirname(path), 0o700);
  refuseOpenFolders(path);
}

/** The same for existing folders; creates nothing. */
function refuseOpenFolders(path: string): void {
  const folder = dirname(path);
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats !== undefined) refuseOpenFolder(folder, stats);
  if (IS_UNIX) for (let at = dirname(folder); at !== dirname(at); at = dirname(at)) refuseOpenAncestor(at);
}

function refuseOpenFolder(folder: string, stats: Stats): void {
  if (!stats.isDirectory()) throw new StoreError(`${folder}: must be a real directory, not a link`);
  if (!IS_UNIX) return;
  checkOwner(folder, stats);
  if ((stats.mode & 0o022) !== 0)
    throw new StoreError(`${folder}: others can write to it; chmod go-w would be right`);
}

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/** A user who can write to a folder can replace its contents, except in a sticky one such as /tmp. */
function refuseOpenAncestor(folder: string): void {
  const mode = statSync(folder, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0)
    throw new StoreError(
      `${folder}: everybody can write to it, and so replace the store below; chmod o-w would be right`,
    );
}

/** Throws `StoreError` for a link, another kind of file, another owner, or a file that others can read. Missing is fine. */
export function checkFile(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isFile()) throw new StoreError(`${path}: must be a regular file, not a link or a device`);
  if (!IS_UNIX) return;
  checkOwner(path, stats);
  if ((stats.mode & 0o077) !== 0)
    throw new StoreError(`${path}: others can read it; mode 0600 would be right`);
}

/** Who could read or replace a store and its backup; makes nothing. Throws `StoreError`. */
export function checkAccess(path: string): void {
  refuseOpenFolders(path);
  for (const file of [path, `${path}.bak`]) checkFile(file);
}

/** An empty file that no other user can read; fails when there is one. SQLite gives its log the same mode. */
export function createFile(path: string): void {
  closeSync(openSync(path, "wx", 0o600));
}

/** Distinguishes a file from one that took its name. */
export function identityOf(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "missing" : `${stats.dev}:${stats.ino}`;
}

function checkOwner(path: string, { uid }: Stats): void {
  const own = process.geteuid?.() ?? uid;
  if (uid !== own) throw new StoreError(`${path}: belongs to user ${uid}, not to ${own}`);
}

/** Another process, or another store of this one, has the files open. */
export class InUseError extends StoreError {}

/**
 * Keeps other processes, and other stores of this one, away until disposed of. The system releases it when the process
 * ends in any way. Throws `InUseError` when another store holds it.
 */
export function lockStore(path: string): Disposable {
  const file = `${path}.lock`;
  checkFile(file);
  if (!existsSync(file)) createFile(file);
  // An empty database: SQLite's file lock is the only advisory lock of this runtime.
  const holder = new DatabaseSync(file, { timeout: 0 });
  try {
    // Nothing is ever written, on a full disk either: the journal is no file, and the transaction does not end.
    holder.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    holder.close();
    if (isBusy(error)) throw new InUseError(`${path}: in use by another process`, { cause: error });
    throw new StoreError(`${file}: ${messageOf(error)}`, { cause: error });
  }
  return { [Symbol.dispose]: () => holder.close() };
}
