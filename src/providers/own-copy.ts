/**
 * Where a download is kept. A file that weir has not written, of another program or of the user's, is read and never
 * replaced: the download then lies beside it, under a name of weir's own.
 */
import { createHash } from "node:crypto";
import { closeSync, constants, lstatSync, openSync, readSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ConfigError, errnoOf } from "#core/errors.ts";
import { isPemText } from "#core/files.ts";

/** What weir has written where, over restarts. */
export interface WrittenBook {
  /** SHA-256 of what was written to this absolute path, the last two times; empty: never. */
  get(file: string): readonly string[];
  set(file: string, hashes: readonly string[]): void;
}

const HEAD_BYTES = 4096;
const SQLITE_MAGIC = "SQLite format 3\0";

/** Why a download may not even be kept beside what is there; null: it may, or nothing is there. */
export function downloadFault(file: string): string | null {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  if (!stats.isFile()) return `${file} must be a regular file, not a link, a folder or a device`;
  const head = headOf(file);
  if (isPemText(head)) return `${file} holds a key or a certificate; a list needs a path of its own`;
  return head.startsWith(SQLITE_MAGIC) ? `${file} is a database; a list needs a path of its own` : null;
}

function headOf(file: string): string {
  const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const bytes = Buffer.alloc(HEAD_BYTES);
    return bytes.toString("latin1", 0, readSync(descriptor, bytes));
  } finally {
    closeSync(descriptor);
  }
}

export function besideOf(file: string): string {
  return `${file}.weir`;
}

/** The path to write to. Throws `ConfigError` where there is none. */
export async function targetOf(file: string, maxBytes: number, book: WrittenBook): Promise<string> {
  refuse(downloadFault(file));
  const found = await readRegular(file, maxBytes).catch((error: unknown) => {
    if (isMissing(error)) return null;
    if (error instanceof ConfigError) return "strange" as const;
    throw error;
  });
  if (found === null) return file;
  if (found !== "strange" && book.get(file).includes(await hashOf(found.bytes))) return file;
  refuse(downloadFault(besideOf(file)));
  return besideOf(file);
}

/** To be said before the file is there: whatever happens in between, what is there is known to be ours. */
export function noteWritten(book: WrittenBook, file: string, hash: string): void {
  const [last] = book.get(file);
  if (last !== hash) book.set(file, last === undefined ? [hash] : [hash, last]);
}

/** The newer of the file and what is kept beside it. Rejects as `readRegular`. */
export async function readNewest(file: string, maxBytes: number): ReturnType<typeof readRegular> {
  const [there, beside] = await Promise.all([changedAtMs(file), changedAtMs(besideOf(file))]);
  return readRegular(beside > there ? besideOf(file) : file, maxBytes);
}

async function changedAtMs(file: string): Promise<number> {
  try {
    return (await stat(file)).mtimeMs;
  } catch {
    return -Infinity;
  }
}

/** Rejects with `ConfigError` for what is no regular file, which might never end, or a larger one. */
export async function readRegular(
  file: string,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly changedAtMs: number }> {
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw new ConfigError("it must be a regular file");
    if (found.size > maxBytes) throw new ConfigError(`it is larger than ${maxBytes} bytes`);
    return { bytes: await handle.readFile(), changedAtMs: found.mtimeMs };
  } finally {
    await handle.close();
  }
}

/** A millisecond, or two where the processor has no instructions for it. */
const HASHED_AT_ONCE = 1024 * 1024;

/** SHA-256, a piece in each turn of the event loop. */
export async function hashOf(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes.length; at += HASHED_AT_ONCE) {
    if (at > 0) await nextTurn();
    hash.update(bytes.subarray(at, at + HASHED_AT_ONCE));
  }
  return hash.digest("hex");
}

function refuse(fault: string | null): void {
  if (fault !== null) throw new ConfigError(fault);
}

function isMissing(error: unknown): boolean {
  return errnoOf(error) === "ENOENT";
}
