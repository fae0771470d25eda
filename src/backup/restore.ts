/** A store out of a backup, where none is, or in the place of one that is kept aside. */
import { existsSync } from "node:fs";
import { ConfigError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { lockStore } from "#store/file-safety.ts";
import { acceptRollback } from "#store/high-mark.ts";
import { refuseForeignFiles } from "#store/own-file.ts";
import type { BackedUpStore } from "./contents.ts";
import { asideOf, moveFiles, removeFiles } from "./store-files.ts";

export interface StoreTarget {
  /** Absolute. */
  readonly path: string;
  readonly store: BackedUpStore;
  /** Tables that this version knows. */
  readonly parts: readonly string[];
}

/** Changes nothing. Throws `StoreError`, `ConfigError` where the store cannot be put there. */
export function checkTarget(target: StoreTarget, replace: boolean): void {
  checkContents(target);
  const { path } = target;
  if (!isThere(path)) return;
  lockStore(path)[Symbol.dispose](); // in use: refused before anything is moved
  if (!replace) throw new ConfigError(`${path} is there already; -replace keeps it aside and goes on`);
}

/** The same, of a store that may be in use and will be replaced. */
export function checkContents({ path, store, parts }: StoreTarget): void {
  refuseForeignFiles(path, parts);
  refuseStrangeTables(store, parts);
}

/** Throws `ConfigError` where a later version has made it. `parts`: tables that this version knows. */
export function refuseStrangeTables(store: BackedUpStore, parts: readonly string[]): void {
  const strange = store.parts.find(({ name }) => !parts.includes(name));
  if (strange !== undefined)
    throw new ConfigError(
      `the backup has a table ${strange.name} of ${store.role}, which this version does not know`,
    );
}

export interface PutStore {
  /** The name under which what was there is kept; null: nothing was. */
  readonly aside: string | null;
  /** What was there is there again. */
  takeBack(): void;
}

/** Throws `StoreError`, or what the file system throws, with everything as it was. */
export function putStore(target: StoreTarget, log: Log, nowMs: () => number): PutStore {
  const { path } = target;
  const aside = isThere(path) ? asideOf(path, nowMs()) : null;
  if (aside !== null) moveFiles(path, aside);
  if (existsSync(path)) throw new ConfigError(`${path} is there again; is weir running?`);
  const takeBack = (): void => {
    removeFiles(path);
    if (aside !== null) moveFiles(aside, path);
  };
  try {
    acceptRollback(path); // the mark of the store that was there
    fillStore(target, log, nowMs);
  } catch (error) {
    takeBack();
    throw error;
  }
  return { aside, takeBack };
}

/** A new store with these records. Throws `StoreError`. */
export function fillStore({ path, store, parts }: StoreTarget, log: Log, nowMs: () => number): void {
  using made = Store.open({ path, parts, nowMs, log });
  const changes = store.parts.flatMap(({ name, records }) =>
    records.map(([key, value]) => ({ part: name, key, value })),
  );
  made.commit(changes, { backup: true });
}

function isThere(path: string): boolean {
  return existsSync(path) || existsSync(`${path}.bak`);
}
