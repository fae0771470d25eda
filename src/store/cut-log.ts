/** Takes a transaction that was refused out of SQLite's log, where its frames may lie whole and would count after a crash. */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { messageOf, StoreError, errnoOf } from "#core/errors.ts";
import { sqliteCodeOf } from "./sqlite-code.ts";

/** A change was refused and cannot be taken back: only opening the file anew shows whether it is in force. */
export class UndecidedError extends StoreError {}

/** https://sqlite.org/walformat.html §1: a header, then frames of a header and a page. */
const LOG_HEAD = 32;
const FRAME_HEAD = 24;

/** Nothing behind the last transaction that was committed remains to be read. Throws `UndecidedError`. */
export function cutLog(database: DatabaseSync, path: string, why: unknown): void {
  try {
    const frames = Number(database.prepare("PRAGMA wal_checkpoint(NOOP)").get()?.["log"]);
    const pageBytes = Number(database.prepare("PRAGMA page_size").get()?.["page_size"]);
    if (frames >= 0) cutAt(`${path}-wal`, frames === 0 ? 0 : LOG_HEAD + frames * (FRAME_HEAD + pageBytes));
  } catch (error) {
    if (wroteNothing(error, why)) return;
    throw new UndecidedError(`${path}: a change that was refused cannot be taken back: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** https://sqlite.org/rescode.html: only then all frames may have been written. */
const FSYNC_FAILED = 1034;

/** A file system that is read-only has refused the frames, too, unless it became so because it could not flush them. */
function wroteNothing(error: unknown, why: unknown): boolean {
  const code = errnoOf(error);
  return code === "EROFS" && sqliteCodeOf(why) !== FSYNC_FAILED;
}

function cutAt(log: string, endBytes: number): void {
  const descriptor = openSync(log, "r+");
  try {
    if (fstatSync(descriptor).size <= endBytes) return;
    try {
      ftruncateSync(descriptor, endBytes);
    } catch {
      writeSync(descriptor, Buffer.alloc(LOG_HEAD), 0, LOG_HEAD, endBytes); // a head of zeros ends the log, too
    }
    syncIfPossible(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The medium refuses already; a process that ends now leaves what the system has, and that is cut. */
function syncIfPossible(descriptor: number): void {
  try {
    fsyncSync(descriptor);
  } catch {
    // said by the refusal of the change
  }
}
