/** A backup as the running weir has given it, checked and written to a new file. */
import { readFile } from "node:fs/promises";
import { sealAge } from "./age.ts";
import { decodeContents, encodeContents, type BackupContents } from "./contents.ts";
import { openBackup, sealBackup } from "./sealing.ts";
import { writeWhole } from "./write.ts";

/** One of the two at most; neither: it is not encrypted. */
export interface BackupKeys {
  readonly passphrase: string | null;
  /** Public keys of age. */
  readonly recipients: readonly Buffer[];
}

/** Answers with what is in it. Rejects with `BackupError` where it cannot be read again, with EEXIST where there is a file. */
export async function writeBackup(
  path: string,
  made: Buffer,
  { passphrase, recipients }: BackupKeys,
): Promise<BackupContents> {
  const contents = decodeContents(await openBackup(made, null));
  if (recipients.length > 0) {
    await writeWhole(path, sealAge(made, recipients)); // without a key it cannot be read back
    return contents;
  }
  const isPlain = passphrase === null;
  await writeWhole(path, isPlain ? made : await sealBackup(encodeContents(contents), passphrase));
  return decodeContents(await openBackup(await readFile(path), passphrase));
}
