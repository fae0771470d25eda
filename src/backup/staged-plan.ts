/**
 * A restore that waits for a start: the stores that are to take the place of others lie beside those, and a folder in the
 * home directory says what is to be done. Its name is how far it has come, changed by one rename each:
 *
 * `restore.making` → `restore.staged` → `restore.applied` → gone
 *                                                        → `restore.back` → `restore.emptied` → gone
 *
 * Every step can be done once more where the process was killed in it.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"; // prettier-ignore
import { join } from "node:path";
import * as z from "zod";
import { ConfigError } from "#core/errors.ts";
import { STORE_ROLES } from "./contents.ts";

export type StageState = "making" | "staged" | "applied" | "back" | "emptied";

const texts = z.record(z.string(), z.string());
const planShape = z.object({
  /** Who has asked, for the audit log. */
  by: z.object({ kind: z.enum(["owner", "token", "program"]), name: z.string(), id: z.string().optional() }),
  from: z.string(),
  backup: z.object({ created_at: z.int(), version: z.string() }),
  stores: z.array(
    z.object({
      role: z.enum(STORE_ROLES),
      /** Absolute. */
      path: z.string(),
      /** What the files of the new store are called behind the path; the store itself, "", is the last one. */
      suffixes: z.array(z.string()),
      /** Where what is there goes. */
      aside: z.string(),
    }),
  ),
  /** Of the file; null: the backup has none. */
  configuration: z.string().nullable(),
  choices: z.object({ selected: texts, storage: texts }),
});

export type RestorePlan = z.output<typeof planShape>;

/** In the folder of the plan. */
export const PLAN_FILES = {
  plan: "plan.json",
  configuration: "configuration",
  configurationBefore: "configuration.before",
  choicesBefore: "choices.before",
  reason: "reason",
} as const;

/** Behind the path of a store: the one that is to be there. */
export const STAGED_SUFFIX = ".restoring";

export function folderOf(home: string, state: StageState): string {
  return join(home, `restore.${state}`);
}

export function isIn(home: string, state: StageState): boolean {
  return existsSync(folderOf(home, state));
}

/** Throws `ConfigError`: without the plan it cannot be told what is where. */
export function readPlan(home: string, state: StageState): RestorePlan {
  const folder = folderOf(home, state);
  try {
    return planShape.parse(JSON.parse(readFileSync(join(folder, PLAN_FILES.plan), "utf8")));
  } catch (cause) {
    throw new ConfigError(
      `${join(folder, PLAN_FILES.plan)}: the plan of a restore is missing or damaged, and it cannot be told how far that has come: see that the stores are those that are wanted (what was there before lies beside them as NAME.before-restore-TIME), then move ${folder} away`,
      { cause },
    );
  }
}

/** A file of the plan, on the medium when this returns. */
export function writePart(folder: string, name: string, bytes: Uint8Array): void {
  writeFileSync(join(folder, name), bytes, { mode: 0o600, flush: true });
}

export function makeFolder(home: string): string {
  const folder = folderOf(home, "making");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

/** What was done before is on the medium before this is. */
export function turnInto(home: string, from: StageState, to: StageState): void {
  renameSync(folderOf(home, from), folderOf(home, to));
  syncFolder(home);
}

export function drop(home: string, state: StageState): void {
  const folder = folderOf(home, state);
  const gone = folderOf(home, "making"); // a folder that is removed half way says nothing of its state
  rmSync(gone, { recursive: true, force: true });
  renameSync(folder, gone);
  rmSync(gone, { recursive: true, force: true });
}

/** Some systems have no such thing. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, "r");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // a rename is whole all the same
  }
}
