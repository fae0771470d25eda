/** What a start does with a restore that waits: all of it or nothing, before anything else of the state is opened. */
import { copyFileSync, existsSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf } from "#core/errors.ts";
import { lockStore } from "#store/file-safety.ts";
import { removeStore } from "./stage.ts";
import { moveFiles, removeFiles, suffixesOf } from "./store-files.ts";
import {
  drop,
  folderOf,
  isIn,
  PLAN_FILES,
  readPlan,
  STAGED_SUFFIX,
  syncFolder,
  turnInto,
  writePart,
  type RestorePlan,
} from "./staged-plan.ts";

/** The files that are no stores. */
export interface OtherFiles {
  /** Content for a file; on the medium, and in its place by `commit`. Null: it is what the file has. */
  prepare(path: string, bytes: Uint8Array): Promise<(AsyncDisposable & { commit(): Promise<void> }) | null>;
  /** The file of choices, absolute. */
  readonly choices: string;
  /** Never throws: choices are conveniences. */
  writeChoices(choices: RestorePlan["choices"]): void;
}

export type Outcome =
  | { readonly kind: "applied"; readonly plan: RestorePlan }
  /** Everything is as it was before. */
  | { readonly kind: "failed"; readonly plan: RestorePlan; readonly reason: string };

/**
 * Ends what was begun: a restore that waits is put in force, one whose start has failed is taken back. Null: there is
 * none. Rejects with `InUseError` where another weir has the state, and nothing was done.
 */
export async function finishRestore(home: string, files: OtherFiles): Promise<Outcome | null> {
  const state = (["back", "emptied", "applied", "staged"] as const).find((one) => isIn(home, one));
  if (state === undefined) return null;
  const plan = readPlan(home, state);
  if (state === "applied") return { kind: "applied", plan };
  using _locks = lockAll(plan);
  if (state === "staged") return apply(home, plan, files);
  const file = join(folderOf(home, state), PLAN_FILES.reason);
  const reason = existsSync(file) ? readFileSync(file, "utf8") : "the start has failed";
  if (state === "back") {
    for (const { path } of plan.stores) removeFiles(path);
    turnInto(home, "back", "emptied");
  }
  await bringBack(home, plan, files);
  return { kind: "failed", plan, reason };
}

/** The start that was to follow has failed; the next one takes it back. False: there is nothing to take back. */
export function giveUp(home: string, reason: string): boolean {
  if (!isIn(home, "applied")) return false;
  try {
    writePart(folderOf(home, "applied"), PLAN_FILES.reason, Buffer.from(reason));
  } catch {
    // A full disk may be why the start has failed; it is taken back without the reason.
  }
  turnInto(home, "applied", "back");
  return true;
}

/** It is in force, and the program runs by it. */
export function settle(home: string): void {
  if (isIn(home, "applied")) drop(home, "applied");
}

async function apply(home: string, plan: RestorePlan, files: OtherFiles): Promise<Outcome> {
  const folder = folderOf(home, "staged");
  try {
    if (plan.configuration !== null) keepCopy(plan.configuration, folder, PLAN_FILES.configurationBefore);
    keepCopy(files.choices, folder, PLAN_FILES.choicesBefore);
    await using prepared =
      plan.configuration === null
        ? null
        : await files.prepare(plan.configuration, readFileSync(join(folder, PLAN_FILES.configuration)));
    for (const store of plan.stores) moveIn(store);
    await prepared?.commit();
  } catch (error) {
    for (const store of plan.stores) moveOut(store);
    discard(home, plan);
    return { kind: "failed", plan, reason: messageOf(error) };
  }
  files.writeChoices(plan.choices);
  turnInto(home, "staged", "applied");
  return { kind: "applied", plan };
}

/** The new store's own file is the last one: as long as it lies beside, the others may have come only in part. */
function moveIn({ path, suffixes, aside }: RestorePlan["stores"][number]): void {
  const staged = path + STAGED_SUFFIX;
  if (!existsSync(staged)) return;
  for (const suffix of suffixesOf(path)) {
    const isNew = suffixes.includes(suffix) && !existsSync(staged + suffix);
    if (!isNew && existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  }
  for (const suffix of suffixes) if (existsSync(staged + suffix)) renameSync(staged + suffix, path + suffix);
  syncFolder(dirname(path));
}

/** What has come of it goes, and what was there is there again. */
function moveOut({ path, suffixes, aside }: RestorePlan["stores"][number]): void {
  const staged = path + STAGED_SUFFIX;
  for (const suffix of suffixes.toReversed())
    if (!existsSync(staged + suffix) && existsSync(path + suffix)) renameSync(path + suffix, staged + suffix);
  moveBack(path, aside);
}

function moveBack(path: string, aside: string): void {
  moveFiles(aside, path);
  syncFolder(dirname(path));
}

async function bringBack(home: string, plan: RestorePlan, files: OtherFiles): Promise<void> {
  const folder = folderOf(home, "emptied");
  for (const { path, aside } of plan.stores) moveBack(path, aside);
  const configuration = join(folder, PLAN_FILES.configurationBefore);
  if (plan.configuration !== null && existsSync(configuration)) {
    await using prepared = await files.prepare(plan.configuration, readFileSync(configuration));
    await prepared?.commit();
  }
  const choices = join(folder, PLAN_FILES.choicesBefore);
  if (existsSync(choices)) copyFileSync(choices, files.choices);
  drop(home, "emptied");
}

function discard(home: string, plan: RestorePlan): void {
  drop(home, "staged");
  for (const { path } of plan.stores) removeStore(path + STAGED_SUFFIX);
}

/** Whole or not at all, and once: what is copied may be of the restore by the second time. On the medium before what it is a copy of is replaced. */
function keepCopy(from: string, folder: string, name: string): void {
  if (existsSync(join(folder, name)) || !existsSync(from)) return;
  const part = `${name}.part`;
  writePart(folder, part, readFileSync(from));
  renameSync(join(folder, part), join(folder, name));
  syncFolder(folder);
}

function lockAll({ stores }: RestorePlan): Disposable {
  using undo = new DisposableStack();
  for (const { path } of stores) undo.use(lockStore(path));
  return undo.move();
}
