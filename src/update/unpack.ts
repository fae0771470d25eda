/** An archive of the program, onto the disk. */
import { createReadStream } from "node:fs";
import { chmod, mkdir, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, ProtocolError } from "#core/errors.ts";
import { readTarGzStream, type TarEntry } from "#archive/tar.ts";

/** A build has some 300 MiB in 500 files. */
const LIMITS = { maxBytes: 2 * 1024 * 1024 * 1024, maxEntries: 20_000, maxRatio: 100 };

/**
 * Writes what is below the one folder at the top of the archive into `folder`, which is made, file by file onto the
 * medium. Throws `ProtocolError` for a bad archive: links, devices, names that lead out, a name that comes twice.
 */
export async function unpackBuild(archive: string, folder: string): Promise<void> {
  const folders = new Folders(folder);
  await folders.make([]);
  const { size } = await stat(archive);
  let top: string | null = null;
  for await (const entry of readTarGzStream(createReadStream(archive), size, LIMITS)) {
    const [first = "", ...path] = entry.path;
    top ??= first;
    if (first !== top) throw new ProtocolError(`the archive has ${first} beside the folder ${top}`);
    if (path.length > 0) await write(path, entry, folders);
    else if (entry.pieces !== null) throw new ProtocolError("the archive has no folder at its top");
  }
}

async function write(
  path: readonly string[],
  { pieces, isExecutable }: TarEntry,
  folders: Folders,
): Promise<void> {
  try {
    await folders.make(pieces === null ? path : path.slice(0, -1));
    if (pieces === null) return;
    await using file = await open(join(folders.top, ...path), "wx");
    for await (const piece of pieces) await file.writeFile(piece);
    await file.chmod(isExecutable ? 0o755 : 0o644); // whatever the umask is
    await file.datasync(); // a link must not lead to half a program after a loss of power
  } catch (error) {
    const code = errnoOf(error);
    if (code !== "EEXIST" && code !== "ENOTDIR") throw error;
    throw new ProtocolError(`the archive holds ${path.join("/")} twice`, { cause: error });
  }
}

/** Those that were made, each once, open to readers whatever the umask is: a service has another user than its installer. */
class Folders {
  readonly top: string;
  readonly #made = new Set<string>();

  constructor(top: string) {
    this.top = top;
  }

  async make(path: readonly string[]): Promise<void> {
    for (let depth = 0; depth <= path.length; depth++) {
      const folder = join(this.top, ...path.slice(0, depth));
      if (this.#made.has(folder)) continue;
      await mkdir(folder);
      await chmod(folder, 0o755);
      this.#made.add(folder);
    }
  }
}
