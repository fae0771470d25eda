/** A new file, whole or not at all, which no other user can read. */
import { link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "#core/errors.ts";

/** Rejects with EEXIST where there is one: nothing is overwritten. */
export async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const made = `${path}.weir-new-${process.pid}`;
  try {
    {
      await using file = await open(made, "wx", 0o600);
      await file.writeFile(bytes);
      await file.sync();
    }
    await putAt(made, path);
  } finally {
    await rm(made, { force: true });
  }
  await using folder = await open(dirname(path), "r");
  await folder.sync().catch(() => {}); // some file systems have no such thing
}

/** A rename alone would take the place of what is there. */
async function putAt(made: string, path: string): Promise<void> {
  try {
    await link(made, path);
  } catch (error) {
    if (!HAS_NO_LINKS.has(errnoOf(error) ?? "")) throw error;
    await (await open(path, "wx", 0o600)).close(); // the place is ours from here on
    await rename(made, path);
  }
}

/** What FAT and its like answer, as on most USB sticks. */
const HAS_NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);
