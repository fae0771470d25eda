import { lstat, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ConfigError, ProtocolError, errnoOf } from "#core/errors.ts";
import { readArchive } from "./archive.ts";
import type { ArchiveLimits } from "./budget.ts";

const FIRST_PAGE = "index.html";
/** Lies in a folder that was installed here: only such a one is ever replaced. */
const MARK = ".weir-dashboard";

/**
 * Puts the pages of an archive in the place of `folder` (absolute): unpacked beside it, then swapped by renaming, so
 * that readers see the old or the new. A single folder at the top of the archive is left out. Throws `ProtocolError`
 * for a bad archive or one without a first page, `ConfigError` where the folder was not installed here; the old one stays
 * then, and nothing is left beside them. Not for two at once on one folder.
 */
export async function installPages(
  archive: Uint8Array,
  folder: string,
  limits: ArchiveLimits,
): Promise<void> {
  await refuseStrangeFolder(folder);
  await finishSwap(folder);
  const work = workOf(folder);
  try {
    const fresh = join(work, "fresh");
    await mkdir(fresh, { recursive: true });
    await writeEntries(archive, fresh, limits);
    const pages = await pagesIn(fresh);
    await writeFile(join(pages, MARK), "", { mode: 0o644 });
    await swap(pages, folder, oldIn(work));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** What a run that was killed has left: the pages that it had moved out of the way are put back where no others are. */
export async function finishSwap(folder: string): Promise<void> {
  const work = workOf(folder);
  if ((await namesIn(work)) === null) return;
  if ((await namesIn(folder)) === null) await rename(oldIn(work), folder).catch(ifMissing); // it had not come so far
  await rm(work, { recursive: true, force: true });
}

const workOf = (folder: string): string => join(dirname(folder), `.${basename(folder)}.weir-new`);
const oldIn = (work: string): string => join(work, "old");

/** Pages and documents of others are not thrown away because a path was mistyped. */
export async function refuseStrangeFolder(folder: string): Promise<void> {
  const stats = await lstat(folder).catch(ifMissing);
  if (stats === null) return;
  if (!stats.isDirectory())
    throw new ConfigError(`${folder} is no folder, or a link to one: it is not replaced`);
  const names = await readdir(folder);
  if (names.length === 0 || names.includes(MARK)) return;
  throw new ConfigError(
    `${folder} holds files that weir has not put there: it is not replaced by a dashboard; move it away, or name another folder`,
  );
}

function ifMissing(error: unknown): null {
  if (errnoOf(error) === "ENOENT") return null;
  throw error;
}

/** Null: there is no such folder. */
export async function namesIn(folder: string): Promise<readonly string[] | null> {
  return readdir(folder).catch(ifMissing);
}

async function writeEntries(archive: Uint8Array, target: string, limits: ArchiveLimits): Promise<void> {
  for await (const { path, bytes } of readArchive(archive, limits)) {
    const file = join(target, ...path);
    try {
      await mkdir(bytes === null ? file : dirname(file), { recursive: true });
      // Flushed: pages that are there by name alone would be taken for a dashboard behind a loss of power.
      if (bytes !== null) await writeFile(file, bytes, { flag: "wx", mode: 0o644, flush: true });
    } catch (error) {
      const code = errnoOf(error);
      if (code !== "EEXIST" && code !== "ENOTDIR") throw error;
      throw new ProtocolError(`the archive holds ${JSON.stringify(path.join("/"))} twice`, { cause: error });
    }
  }
}

async function pagesIn(fresh: string): Promise<string> {
  const names = await readdir(fresh);
  const [only] = names;
  const inner = names.length === 1 && only !== undefined ? join(fresh, only) : fresh;
  const pages = (await stat(inner)).isDirectory() ? inner : fresh;
  if ((await namesIn(pages))?.includes(FIRST_PAGE) === true) return pages;
  throw new ProtocolError(`the archive holds no ${FIRST_PAGE}`);
}

async function swap(fresh: string, folder: string, old: string): Promise<void> {
  const replaces = (await namesIn(folder)) !== null;
  if (replaces) await rename(folder, old);
  try {
    await rename(fresh, folder);
  } catch (error) {
    if (replaces) await rename(old, folder);
    throw error;
  }
}
