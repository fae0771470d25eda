import { readFileSync } from "node:fs";
import { readRecipient } from "#backup/age.ts";
import { writeBackup } from "#backup/write-backup.ts";
import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { contentLines } from "./backup-lines.ts";
import { addressOf } from "./controller-address.ts";
import { askForBytes } from "./controller-request.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { linesOf, setUp } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

export const PASSPHRASE_FLAG = {
  "passphrase-file": { kind: "text", value: "FILE", help: "its first line encrypts the backup" },
} as const satisfies FlagTable;

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  ...PASSPHRASE_FLAG,
  recipient: {
    kind: "text",
    value: "age1…,…",
    help: "makes it a file of age, which the holder of one of these keys opens",
  },
  secret: { kind: "text", value: "SECRET", help: "secret of the Controller, where the file has another one" },
};

export const BACKUP_USAGE = usageText(
  `usage: weir backup [flags] FILE   users, tokens, audit log, traffic control, choices and the configuration of the
                                  weir that runs, in one file that must not exist yet
`,
  FLAGS,
);

/** `weir backup FILE`. */
export async function backupCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  const [path, ...more] = flags.rest;
  if (path === undefined || more.length > 0) throw new UsageError(BACKUP_USAGE);
  const passphrase = passphraseIn(flags.text("passphrase-file"));
  const recipients = recipientsIn(flags.text("recipient"));
  if (recipients.length > 0 && passphrase !== null)
    throw new UsageError("backup: -recipient and -passphrase-file exclude each other");
  const setup = setUp(flags, env, SILENT);
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new ConfigError(linesOf(file, result.errors).join("\n"));
  const secret = flags.text("secret") ?? result.config.controller.secret;
  const address = addressOf(result.config, setup.home, secret, "the running weir cannot be asked");
  const made = await askForBytes(address, "GET", "/api/svc/backup");
  const contents = await writeBackup(path, made, { passphrase, recipients });
  for (const line of contentLines(contents)) process.stdout.write(`${line}\n`);
  return 0;
}

/** Throws `UsageError` for what is no key of a recipient. */
function recipientsIn(text: string | null): readonly Buffer[] {
  return (text ?? "").split(",").flatMap((word) => {
    if (word.trim() === "") return [];
    const recipient = readRecipient(word.trim());
    if (recipient === null)
      throw new UsageError(`-recipient: ${word.trim()} is no X25519 recipient of age (age1…)`);
    return [recipient];
  });
}

/** Null: none is wanted. Throws `UsageError` for an empty one. */
export function passphraseIn(file: string | null): string | null {
  if (file === null) return null;
  const [first = ""] = readFileSync(file, "utf8").split(/\r?\n/, 1);
  if (first === "") throw new UsageError(`-passphrase-file: the first line of ${file} is empty`);
  return first;
}
