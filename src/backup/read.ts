/** The contents of a backup file, whichever way it is encrypted. */
import { isAge, openAge, readIdentities } from "./age.ts";
import { decodeContents, type BackupContents } from "./contents.ts";
import { BackupError, openBackup } from "./sealing.ts";

export interface ReadingKeys {
  readonly passphrase: string | null;
  /** Private keys of age. */
  readonly identities: readonly Buffer[];
}

/** Rejects with `BackupError`: no backup, damaged, cut off, not to be opened by these keys, or more than `mostBytes`. */
export async function readBackup(
  file: Buffer,
  { passphrase, identities }: ReadingKeys,
  mostBytes?: number,
): Promise<BackupContents> {
  if (isAge(file) && identities.length === 0)
    throw new BackupError("it is encrypted for recipients of age; it takes the key of one of them");
  return decodeContents(
    await openBackup(isAge(file) ? openAge(file, identities) : file, passphrase, mostBytes),
  );
}

/** Keys out of one text: lines of age-keygen where the file is one of age, else a passphrase; "" is none. Throws `BackupError`. */
export function keysFor(file: Buffer, text: string): ReadingKeys {
  if (!isAge(file)) return { passphrase: text === "" ? null : text, identities: [] };
  const identities = text.trim() === "" ? [] : readIdentities(text);
  if (identities === null)
    throw new BackupError("its key is to be AGE-SECRET-KEY-1… as age-keygen writes it");
  return { passphrase: null, identities };
}
