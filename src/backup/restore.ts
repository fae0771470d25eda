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
export function checkTarget({ path, store, parts }: StoreTarget, replace: boolean): void {
  refuseForeignFiles(path, parts);
  const strange = store.parts.find(({ name }) => !parts.includes(name));
  if (strange !== undefined)
    throw new ConfigError(
      `the backup has a table ${strange.name} of ${store.role}, which this version does not know`,
    );
  if (!isThere(path)) return;
  lockStore(path)[Symbol.dispose](); // in use: refused before anything is moved
  if (!replace) throw new ConfigError(`${path} is there already; -replace keeps it aside and goes on`);
}

/** Answers with the name under which what was there is kept; null: nothing was. Throws `StoreError`. */
export function putStore({ path, store, parts }: StoreTarget, log: Log, nowMs: () => number): string | null {
  const aside = isThere(path) ? moveAside(path, nowMs()) : null;
  if (existsSync(path)) throw new ConfigError(`${path} is there again; is weir running?`);
  acceptRollback(path); // the mark of the store that was there
  using made = Store.open({ path, parts, nowMs, log });
  const changes = store.parts.flatMap(({ name, records }) =>
    records.map(([key, value]) => ({ part: name, key, value })),
  );
  made.commit(changes, { backup: true });
  return aside;
}

function isThere(path: string): boolean {
  return existsSync(path) || existsSync(`${path}.bak`);
}

function moveAside(path: string, nowMs: number): string {
  const name = `${path}.before-restore-${Math.trunc(nowMs / 1000)}`;
  for (const file of pathsOfStore(path))
    if (existsSync(file) && !file.endsWith(".lock")) renameSync(file, name + file.slice(path.length));
  return name;
}
