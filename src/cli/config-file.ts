/** The file that the configuration is read from, as it is written: whole or not at all, with what it was before beside it. */
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, open, readdir, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ConfigVersion } from "#core/control.ts";
import { ApiError, messageOf } from "#core/errors.ts";

/** How many earlier versions are kept. */
const MOST_VERSIONS = 10;
/** What a write left behind that was killed is removed by a later one; a younger one may still be on its way. */
const STALE_MS = 3_600_000;

export interface FileContent {
  readonly bytes: Uint8Array;
  readonly hash: string;
}

/** New content, on the medium beside the file already; it takes the file's place by `commit`, and is gone without. */
export interface PreparedFile extends AsyncDisposable {
  /** Throws `ApiError` 409 where the file has changed meanwhile; it is then as it was found. */
  commit(): Promise<void>;
}

export class ConfigFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  async read(): Promise<FileContent> {
    return contentOf(await realpath(this.path));
  }

  /**
   * Owner and mode will be those of the file; a symbolic link goes on leading to it. `hash`: of the file that the content
   * was made from; throws `ApiError` 409 where it is another one by now.
   */
  async prepare(bytes: Uint8Array, hash: string): Promise<PreparedFile> {
    const real = await realpath(this.path);
    refuseOther(await contentOf(real), hash);
    const { mode, uid, gid } = await stat(real);
    const made = `${real}${NEW_SUFFIX}${randomBytes(4).toString("hex")}`;
    const remove = (): Promise<void> => rm(made, { force: true });
    try {
      await using handle = await open(made, "wx", 0o600); // it has its owner before others may read it
      await handle.writeFile(bytes);
      if (process.getuid?.() === 0) await handle.chown(uid, gid);
      await handle.chmod(mode & 0o777);
      await handle.sync();
    } catch (error) {
      await remove();
      throw new ApiError(500, `the file cannot be written: ${messageOf(error)}`, { cause: error });
    }
    return {
      commit: async () => {
        refuseOther(await contentOf(await realpath(this.path)), hash);
        await keepVersion(real);
        await rename(made, real).catch((error: unknown) => {
          throw new ApiError(500, `the file cannot be replaced: ${renameWords(error)}`, { cause: error });
        });
        await syncFolder(dirname(real));
        await removeOld(real);
      },
      [Symbol.asyncDispose]: remove,
    };
  }

  /** The newest first. */
  async versions(): Promise<readonly ConfigVersion[]> {
    const real = await realpath(this.path);
    const numbers = (await versionNumbers(real)).slice(0, MOST_VERSIONS);
    return Promise.all(
      numbers.map(async (id) => {
        const { size, mtimeMs } = await stat(versionPath(real, id));
        return { id, sizeBytes: size, writtenAtMs: mtimeMs };
      }),
    );
  }

  /** Null: there is none. */
  async version(id: number): Promise<FileContent | null> {
    const real = await realpath(this.path);
    if (!(await versionNumbers(real)).includes(id)) return null;
    return contentOf(versionPath(real, id));
  }
}

async function contentOf(file: string): Promise<FileContent> {
  const bytes = await readFile(file);
  return { bytes, hash: createHash("sha256").update(bytes).digest("hex") };
}

function refuseOther(found: FileContent, hash: string): void {
  if (found.hash !== hash)
    throw new ApiError(
      409,
      `the configuration file has changed meanwhile: its hash is ${found.hash} now; read it again`,
    );
}

/** In a container the file itself may be what is mounted. */
function renameWords(error: unknown): string {
  const isMount = error instanceof Error && "code" in error && error.code === "EBUSY";
  return isMount ? "it is a mount of its own; mount its folder instead" : messageOf(error);
}

const NEW_SUFFIX = ".weir-new-";
const versionPath = (real: string, id: number): string => `${real}.weir-${id}`;

/** Newest first. */
async function versionNumbers(real: string): Promise<readonly number[]> {
  const prefix = `${basename(real)}.weir-`;
  const names = (await readdir(dirname(real))).filter((name) => name.startsWith(prefix));
  const numbers = names
    .map((name) => name.slice(prefix.length))
    .filter((text) => /^[1-9]\d{0,8}$/.test(text));
  return numbers.map(Number).sort((left, right) => right - left);
}

/** The present file gets a second name, which costs no copy; where the file system has no such names it is copied. */
async function keepVersion(real: string): Promise<void> {
  const [newest = 0] = await versionNumbers(real);
  const kept = versionPath(real, newest + 1);
  try {
    await link(real, kept);
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    if (isThere)
      throw new ApiError(409, "another program keeps a version of the file at this moment", { cause: error });
    await copyFile(real, kept, constants.COPYFILE_EXCL);
    await using handle = await open(kept, "r+");
    await handle.sync();
  }
}

async function removeOld(real: string): Promise<void> {
  for (const id of (await versionNumbers(real)).slice(MOST_VERSIONS))
    await rm(versionPath(real, id), { force: true });
  const folder = dirname(real);
  const made = (await readdir(folder)).filter((name) => name.startsWith(basename(real) + NEW_SUFFIX));
  for (const name of made) {
    const found = await stat(join(folder, name)).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > STALE_MS)
      await rm(join(folder, name), { force: true });
  }
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync().catch(() => {}); // some file systems have no such thing; the rename is whole all the same
}
