/** A store out of a backup, where none is, or in the place of one that is kept aside. */
import { existsSync, renameSync } from "node:fs";
import { ConfigError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { lockStore } from "#store/file-safety.ts";
import { acceptRollback } from "#store/high-mark.ts";
import { pathsOfStore, refuseForeignFiles } from "#store/own-file.ts";
import type { BackedUpStore } from "./contents.ts";

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

/** Answers with the name under which what was there is kept; null: nothing was. Throws `StoreError`. */
export function putStore(target: StoreTarget, log: Log, nowMs: () => number): string | null {
  const { path } = target;
  const aside = isThere(path) ? moveAside(path, nowMs()) : null;
  if (existsSync(path)) throw new ConfigError(`${path} is there again; is weir running?`);
  acceptRollback(path); // the mark of the store that was there
  fillStore(target, log, nowMs);
  return aside;
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

/** Where what is there goes: nothing is there yet, also where two restores come within a second of a clock that may be set back. */
export function asideOf(path: string, nowMs: number): string {
  const wanted = `${path}.before-restore-${Math.trunc(nowMs / 1000)}`;
  let aside = wanted;
  for (let at = 2; pathsOfStore(aside).some((file) => existsSync(file)); at++) aside = `${wanted}-${at}`;
  return aside;
}

function moveAside(path: string, nowMs: number): string {
  const name = asideOf(path, nowMs);
  for (const file of pathsOfStore(path))
    if (existsSync(file) && !file.endsWith(".lock")) renameSync(file, name + file.slice(path.length));
  return name;
}
