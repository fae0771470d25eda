/** A new file, whole or not at all, which no other user can read. */
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Rejects with EEXIST where there is one: nothing is overwritten. */
export async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const made = `${path}.weir-new-${process.pid}`;
  try {
    {
      await using file = await open(made, "wx", 0o600);
      await file.writeFile(bytes);
      await file.sync();
    }
    await link(made, path); // a rename would take the place of what is there
  } finally {
    await rm(made, { force: true });
  }
  await using folder = await open(dirname(path), "r");
  await folder.sync().catch(() => {}); // some file systems have no such thing
}
