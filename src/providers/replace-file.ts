import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** What a process that was killed has left goes then; a younger one may still be on its way. By a clock that is set it may be of the future. */
const STALE_MS = 600_000;

/**
 * Replaces the contents so that no reader ever sees half of them, even after a crash: written beside the file, flushed,
 * renamed. `check` looks at the new file before the rename. Throws with the old file as it was and no file left beside
 * it.
 */
export async function replaceFile(
  path: string,
  bytes: Uint8Array,
  check?: (temporary: string) => Promise<void>,
): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const prefix = `.${basename(path)}.`;
  await removeStale(folder, prefix); // first: there may be no room beside it
  const temporary = join(folder, `${prefix}${randomBytes(6).toString("hex")}.tmp`);
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await check?.(temporary);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

async function removeStale(folder: string, prefix: string): Promise<void> {
  const names = await readdir(folder).catch(() => []); // a folder that may be written to and not read
  for (const name of names) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{12}\.tmp$/.test(name.slice(prefix.length))) continue;
    const file = join(folder, name);
    const found = await stat(file).catch(() => null); // another process may have removed it
    if (found?.isFile() === true && Math.abs(Date.now() - found.mtimeMs) > STALE_MS)
      await rm(file, { force: true });
  }
}

/** Makes the rename last, where the file system has such a thing and the folder may be read. */
async function syncFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, "r");
    await handle.sync();
  } catch {
    // the rename is whole all the same
  }
}
