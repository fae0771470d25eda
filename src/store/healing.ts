/** The opening of a store: both files are decoded, and what is damaged, older or missing is made anew from the other. */
import { existsSync, renameSync, rmSync } from "node:fs";
import { StoreError } from "#core/errors.ts";
import type { StoreOptions } from "./store-options.ts";
import { checkFile } from "./file-safety.ts";
import { KeyValueFile, type SealedChange } from "./kv.ts";
import { clearCleanShutdown } from "./clean-shutdown.ts";
import { DamageError } from "./sealed-blob.ts";

type Found = KeyValueFile | "missing" | DamageError;
type Track = (file: KeyValueFile) => KeyValueFile;

/** Primary and backup, which `undo` closes. Throws `StoreError` where neither is sound and not both are missing. */
export function openBoth(
  options: StoreOptions,
  undo: DisposableStack,
): readonly [primary: KeyValueFile, backup: KeyValueFile] {
  const { path, parts, log } = options;
  const track = (file: KeyValueFile) => undo.adopt(file, (one) => one.abandon());
  const backupPath = `${path}.bak`;
  let primary = look(path, parts, track);
  let backup = look(backupPath, parts, track);
  if (primary === "missing" && backup === "missing") {
    log.info(`${path}: a new store`);
    for (const one of [path, backupPath]) putInPlace(makeAnew(one, null, options), one);
    return [track(KeyValueFile.open(path, parts)), track(KeyValueFile.open(backupPath, parts))];
  }
  let source = newest(primary, backup);
  if (source === null)
    throw new DamageError(`${path}: damaged, and no backup can be read: ${why(primary)}; ${why(backup)}`);
  // The backup may be behind, that is its nature; the primary may not.
  if (!(backup instanceof KeyValueFile) || backup.wasTouched) {
    const wasSource: boolean = backup === source;
    backup = track(repair(backupPath, backup, source, options));
    if (wasSource) source = backup;
  }
  if (!(primary instanceof KeyValueFile) || primary.wasTouched || primary.generation < source.generation)
    primary = track(repair(path, primary, source, options));
  return [primary, backup];
}

function look(path: string, parts: readonly string[], track: Track): Found {
  checkFile(path);
  if (!existsSync(path)) return "missing";
  try {
    return track(KeyValueFile.open(path, parts));
  } catch (error) {
    if (error instanceof DamageError) return error;
    throw error;
  }
}

function why(found: Found): string {
  return found instanceof Error ? found.message : "the backup is missing";
}

function newest(primary: Found, backup: Found): KeyValueFile | null {
  if (!(primary instanceof KeyValueFile)) return backup instanceof KeyValueFile ? backup : null;
  return backup instanceof KeyValueFile && backup.generation > primary.generation ? backup : primary;
}

/** Makes the file anew from the sound one, which may be itself. What was damaged is kept aside. */
function repair(path: string, found: Found, source: KeyValueFile, options: StoreOptions): KeyValueFile {
  const { parts, nowMs, log } = options;
  const made = makeAnew(path, source, options);
  const isSound = found instanceof KeyValueFile;
  if (isSound) found.abandon();
  if (found instanceof DamageError || (isSound && found.wasTouched)) {
    const aside = setAside(path, nowMs());
    log.error(
      `${isSound ? `${path}: bytes have changed while no process had it open` : why(found)}; kept as ${aside}, healed from ${source.path}`,
    );
  } else
    log.warning(
      `${path}: ${isSound ? `generation ${found.generation}, while` : "missing;"} ${source.path} has generation ${source.generation}; healed from it`,
    );
  putInPlace(made, path);
  options.events?.healed(path);
  return KeyValueFile.open(path, parts); // decodes all of it
}

/**
 * A file with what the source holds, or an empty one, under another name: a crash or a full disk leaves nothing half made
 * under the right one. Answers with the name.
 */
function makeAnew(path: string, source: KeyValueFile | null, { parts, nowMs }: StoreOptions): string {
  const made = `${path}.tmp`;
  const remove = () => ["", ...BESIDE].forEach((suffix) => rmSync(made + suffix, { force: true }));
  remove();
  using undo = new DisposableStack();
  undo.defer(remove); // where there is no room it must not take some
  const file = undo.adopt(KeyValueFile.create(made, parts, nowMs()), (one) => one.abandon());
  if (source !== null) file.commit(allRecords(source, parts), source.generation, nowMs());
  file.abandon();
  if (existsSync(`${made}-wal`)) throw new StoreError(`${path}: no room to make it anew`);
  undo.move();
  return made;
}

/** What SQLite keeps beside a file that was not closed; beside another file of this name it would be taken for that one's. */
const BESIDE = ["-wal", "-shm", "-journal"] as const;

function putInPlace(made: string, path: string): void {
  for (const suffix of BESIDE) rmSync(path + suffix, { force: true });
  clearCleanShutdown(path);
  renameSync(made, path);
}

function* allRecords(source: KeyValueFile, parts: readonly string[]): Generator<SealedChange> {
  for (const part of parts) for (const [key, blob] of source.blobs(part)) yield { part, key, blob };
}

/**
 * Renames a damaged file, which may be missing, and its log, so that they can be examined. Two files that were damaged
 * within a second are both kept. Returns the new name.
 */
export function setAside(path: string, nowMs: number): string {
  const wanted = `${path}.corrupt-${Math.trunc(nowMs / 1000)}`;
  let aside = wanted;
  for (let at = 2; existsSync(aside) || existsSync(`${aside}-wal`); at++) aside = `${wanted}-${at}`;
  for (const suffix of ["", "-wal"]) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  clearCleanShutdown(path);
  return aside;
}
