/** Backups by the clock, into a folder that keeps the newest ones. */
import { mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isAge, readRecipient } from "#backup/age.ts";
import { BackupError, MAGIC } from "#backup/sealing.ts";
import { writeBackup } from "#backup/write-backup.ts";
import type { BackupControl } from "#core/control.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";

export interface TimedBackupSettings {
  /** Absolute. */
  readonly folder: string;
  readonly everyMs: number;
  /** How many files stay. */
  readonly keep: number;
  /** Absolute; null: they are not encrypted. */
  readonly passphraseFile: string | null;
  /** Of age; none: they are not encrypted for anybody. */
  readonly recipients: readonly string[];
}

export interface TimedBackupsEnv {
  /** Null: none are made. */
  settings(): TimedBackupSettings | null;
  readonly backup: BackupControl;
  readonly log: Log;
}

/** How late one may be. */
const LOOK_MS = 30_000;
/** The time of day is in the name, so names in order are backups in order. */
const NAME = /^weir-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z\.backup$/;

export class TimedBackups implements Disposable {
  readonly #env: TimedBackupsEnv;
  readonly #timer: NodeJS.Timeout;
  #isRunning = false;
  #failed = false;

  constructor(env: TimedBackupsEnv) {
    this.#env = env;
    this.#timer = setInterval(() => void this.look(Date.now()), LOOK_MS).unref();
  }

  /** Makes one where it is due, and removes those beyond `keep`. Never rejects: the log says once that it fails, and it is tried again. */
  async look(nowMs: number): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      const settings = this.#env.settings();
      if (settings === null) return;
      await mkdir(settings.folder, { recursive: true, mode: 0o700 });
      const newest = (await backupsIn(settings.folder, nowMs)).at(-1);
      const ageMs = newest === undefined ? Infinity : nowMs - timeOf(newest);
      if (ageMs >= 0 && ageMs < settings.everyMs) return;
      await this.#make(settings, nowMs);
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) this.#env.log.error(`backup: none could be made: ${messageOf(error)}`);
      this.#failed = true;
    } finally {
      this.#isRunning = false;
    }
  }

  async #make(settings: TimedBackupSettings, nowMs: number): Promise<void> {
    const { folder, passphraseFile, keep } = settings;
    const recipients = settings.recipients.map(recipientOf);
    const passphrase = passphraseFile === null ? null : await passphraseOf(passphraseFile);
    const path = join(folder, nameOf(nowMs));
    // It is read again before an older one is given up.
    await writeBackup(path, Buffer.from(await this.#env.backup.make()), { passphrase, recipients });
    this.#env.log.info(`backup: ${path}`);
    for (const name of (await backupsIn(folder, nowMs)).slice(0, -keep)) await removeOwn(join(folder, name));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** The oldest first; before them those with a date to come, which a clock that was ahead has given. */
async function backupsIn(folder: string, nowMs: number): Promise<readonly string[]> {
  const names = (await readdir(folder)).filter((name) => NAME.test(name)).sort();
  const isAhead = (name: string): boolean => timeOf(name) > nowMs;
  return [...names.filter(isAhead), ...names.filter((name) => !isAhead(name))];
}

function nameOf(nowMs: number): string {
  return `weir-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z.backup`;
}

function timeOf(name: string): number {
  return Date.parse(name.replace(NAME, "$1-$2-$3T$4:$5:$6Z"));
}

/** A file of this name that is no backup stays. */
async function removeOwn(path: string): Promise<void> {
  const head = Buffer.alloc(64);
  {
    await using file = await open(path, "r");
    await file.read(head);
  }
  if (isAge(head) || head.subarray(0, MAGIC.length).toString() === MAGIC) await rm(path);
}

/** Throws `BackupError`: a backup that was to be encrypted is not written in the clear. */
function recipientOf(text: string): Buffer {
  const recipient = readRecipient(text);
  if (recipient === null) throw new BackupError(`${text} is no X25519 recipient of age`);
  return recipient;
}

async function passphraseOf(path: string): Promise<string> {
  const [first = ""] = (await readFile(path, "utf8")).split(/\r?\n/, 1);
  if (first === "") throw new Error(`the first line of ${path} is empty`);
  return first;
}
