/** The sealed store as traffic control uses it. */
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "#core/log.ts";
import { PARTS, type StoreFile } from "#governance/store.ts";
import { Store } from "#store/backup.ts";

/** `path` is absolute; its folder is made where it is missing. */
export function governanceStore(path: string, log: Log): { readonly key: string; readonly file: StoreFile } {
  const file: StoreFile = {
    open() {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      return Store.open({ path, parts: PARTS, nowMs: Date.now, log });
    },
    sizeBytes: () => sizeOf(path) + sizeOf(`${path}-wal`),
    compact: (store) => {
      if (store instanceof Store) store.compact();
    },
  };
  return { key: path, file };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
