/** Lays a restore beside the state of a weir that runs; nothing of that state is touched. */
import { existsSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { pathsOfStore } from "#store/own-file.ts";
import type { BackupContents } from "./contents.ts";
import { checkContents, fillStore, type StoreTarget } from "./restore.ts";
import { asideOf } from "./store-files.ts";
import {
  isIn,
  makeFolder,
  PLAN_FILES,
  STAGED_SUFFIX,
  syncFolder,
  turnInto,
  drop,
  writePart,
  type RestorePlan,
} from "./staged-plan.ts";

export interface StageTarget {
  /** Absolute. */
  readonly home: string;
  /** Of the configuration, absolute. */
  readonly file: string;
  readonly stores: readonly StoreTarget[];
  readonly by: RestorePlan["by"];
  readonly from: string;
}

/** Throws `ConfigError`, `StoreError`, or a fault of the file system, with nothing left behind. */
export function stageRestore(contents: BackupContents, target: StageTarget, nowMs: () => number): void {
  const { home, stores } = target;
  if (isIn(home, "staged")) throw new ConfigError("a restore waits already; the next start puts it in force");
  for (const one of stores) checkContents(one);
  const folder = makeFolder(home);
  try {
    const plan: RestorePlan = {
      by: target.by,
      from: target.from,
      backup: { created_at: contents.createdAtMs, version: contents.version },
      stores: stores.map((one) => stageStore(one, nowMs)),
      configuration: contents.configuration === null ? null : target.file,
      choices: { selected: { ...contents.choices.selected }, storage: { ...contents.choices.storage } },
    };
    if (contents.configuration !== null)
      writePart(folder, PLAN_FILES.configuration, Buffer.from(contents.configuration));
    writePart(folder, PLAN_FILES.plan, Buffer.from(JSON.stringify(plan)));
    syncFolder(folder);
    turnInto(home, "making", "staged");
  } catch (error) {
    drop(home, "making");
    for (const { path } of stores) removeStore(path + STAGED_SUFFIX);
    throw error;
  }
}

function stageStore(target: StoreTarget, nowMs: () => number): RestorePlan["stores"][number] {
  const { path, store } = target;
  const staged = path + STAGED_SUFFIX;
  removeStore(staged); // of an attempt that was killed
  fillStore({ ...target, path: staged }, SILENT, nowMs);
  rmSync(`${staged}.lock`, { force: true });
  syncFolder(dirname(path));
  const suffixes = pathsOfStore(staged)
    .filter((file) => existsSync(file))
    .map((file) => file.slice(staged.length))
    .sort((left, right) => right.length - left.length);
  return { role: store.role, path, suffixes, aside: asideOf(path, nowMs()) };
}

/** Every file of a store at this path. */
export function removeStore(path: string): void {
  for (const file of pathsOfStore(path)) rmSync(file, { force: true });
}
