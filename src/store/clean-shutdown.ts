/**
 * A store that is closed in order leaves a SHA-256 of its file in a file beside it. So damage in bytes without meaning
 * is found, too. The digest is deleted while the store is open.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const SUFFIX = ".sum";

/**
 * True also when there is no digest: after a crash the log is still there, and the records have checksums of their own.
 */
export function matchesCleanShutdown(path: string): boolean {
  if (existsSync(`${path}-wal`) || !existsSync(path + SUFFIX)) return true;
  const sum = readFileSync(path + SUFFIX, "latin1");
  return sum.length !== 64 || sum === digestOf(path);
}

/** Of a file that is closed. Where there is no room for a digest the next start does without: the file itself is in order. */
export function writeCleanShutdown(path: string): void {
  if (existsSync(`${path}-wal`)) return; // the log could not be folded in; then there is nothing final to sum up
  try {
    writeFileSync(path + SUFFIX, digestOf(path), { mode: 0o600 });
  } catch {
    clearCleanShutdown(path);
  }
}

export function clearCleanShutdown(path: string): void {
  rmSync(path + SUFFIX, { force: true });
}

function digestOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
