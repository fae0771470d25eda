import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isAge, readIdentities } from "#backup/age.ts";
import type { BackupContents } from "#backup/contents.ts";
import { readBackup, type ReadingKeys } from "#backup/read.ts";
import { checkTarget, putStore, type PutStore, type StoreTarget } from "#backup/restore.ts";
import { BackupError } from "#backup/sealing.ts";
import { writeWhole } from "#backup/write.ts";
import { safePathEnvironment } from "#config/safe-path.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import { SILENT, type Log } from "#core/log.ts";
import { CACHE_FILE } from "#host/file-guard.ts";
import { STORE_PARTS } from "#host/store-parts.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { PASSPHRASE_FLAG, passphraseIn } from "./backup.ts";
import { contentLines } from "./backup-lines.ts";
import { ConfigFile } from "./config-file.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { openParseEnv } from "./parse-env.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";
import { homeOf } from "./source.ts";

const { d, f } = SOURCE_FLAGS;
const FLAGS: FlagTable = {
  d,
  f,
  ...PASSPHRASE_FLAG,
  "identity-file": {
    kind: "text",
    value: "FILE",
    help: "keys of age-keygen, for a backup made with -recipient",
  },
  replace: { kind: "switch", help: "what is there of weir is kept aside, and replaced" },
  "dry-run": { kind: "switch", help: "say what would be done, and whether it can be" },
};

export const RESTORE_USAGE = usageText(
  `usage: weir restore [flags] FILE   puts a backup where a weir that does not run will find it
`,
  FLAGS,
);

interface Target {
  readonly home: string;
  /** Of the configuration. */
  readonly file: string;
  readonly stores: readonly StoreTarget[];
  readonly replace: boolean;
}

/** `weir restore FILE`. */
export async function restoreCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  const [path, ...more] = flags.rest;
  if (path === undefined || more.length > 0) throw new UsageError(RESTORE_USAGE);
  const contents = await contentsOf(path, {
    passphrase: passphraseIn(flags.text("passphrase-file")),
    identities: identitiesIn(flags.text("identity-file")),
  });
  const home = homeOf(flags, env);
  const file = resolve(flags.text("f") ?? join(home, "config.yaml"));
  const settings = { home, ...safePathEnvironment(env), geodataMode: false, source: file };
  const { files } = openParseEnv(settings, SILENT);
  const stores = contents.stores.map((store) => ({
    path: files.resolve(store.path),
    store,
    parts: STORE_PARTS[store.role],
  }));
  const target: Target = { home, file, stores, replace: flags.on("replace") };
  check(contents, target);
  for (const line of contentLines(contents)) say(line);
  if (flags.on("dry-run")) say(`nothing was changed; it can be restored to ${home}`);
  else await restore(contents, target);
  return 0;
}

async function contentsOf(path: string, keys: ReadingKeys): Promise<BackupContents> {
  try {
    const file = readFileSync(path);
    if (isAge(file) && keys.identities.length === 0)
      throw new BackupError("it is encrypted for recipients of age; it takes -identity-file");
    return await readBackup(file, keys);
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new ConfigError(`${path} cannot be restored: ${error.message}; nothing was changed`, {
      cause: error,
    });
  }
}

/** Throws `UsageError`; what stands in the file is not said. */
function identitiesIn(file: string | null): readonly Buffer[] {
  if (file === null) return [];
  const identities = readIdentities(readFileSync(file, "utf8"));
  if (identities === null)
    throw new UsageError(`-identity-file: ${file} has lines that are no AGE-SECRET-KEY-1… of age-keygen`);
  return identities;
}

/** All of it can be done, or nothing is. */
function check({ configuration }: BackupContents, { file, stores, replace }: Target): void {
  for (const one of stores) checkTarget(one, replace);
  if (configuration === null || replace || !existsSync(file)) return;
  if (readFileSync(file, "utf8") !== configuration)
    throw new ConfigError(`${file} is there already and says something else; -replace keeps it as a version`);
}

/** Throws `ConfigError` with everything as it was. */
async function restore(contents: BackupContents, { home, file, stores }: Target): Promise<void> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const made: PutStore[] = [];
  try {
    for (const one of stores) {
      mkdirSync(dirname(one.path), { recursive: true, mode: 0o700 });
      made.push(putStore(one, SILENT, Date.now));
    }
    if (contents.configuration !== null) await writeConfiguration(file, contents.configuration);
  } catch (error) {
    for (const one of made.toReversed()) one.takeBack();
    throw new ConfigError(`not restored, everything is as it was: ${messageOf(error)}`, { cause: error });
  }
  for (const [at, { path, store }] of stores.entries()) {
    const aside = made[at]?.aside ?? null;
    say(`${store.role}: written to ${path}${aside === null ? "" : `; what was there is ${aside}`}`);
  }
  if (contents.configuration !== null) say(`configuration: written to ${file}`);
  restoreChoices(contents, join(home, CACHE_FILE));
}

async function writeConfiguration(path: string, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  if (existsSync(path)) {
    const present = new ConfigFile(path);
    await using prepared = await present.prepare(bytes, (await present.read()).hash);
    await prepared.commit();
  } else {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    await writeWhole(path, bytes);
  }
}

function restoreChoices({ choices }: BackupContents, path: string): void {
  const faults: string[] = [];
  const log: Log = {
    ...SILENT,
    warning: (text) => void faults.push(typeof text === "string" ? text : text()),
  };
  {
    using cache = new ProfileCache(path, log);
    for (const bucket of ["selected", "storage"] as const)
      cache.setAll(bucket, Object.entries(choices[bucket]));
  }
  say(faults.length === 0 ? `choices: written to ${path}` : `choices: not restored: ${faults.join("; ")}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
