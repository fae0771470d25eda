/** The sealed store as traffic control uses it. */
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "#core/errors.ts";
import { NO_EVENTS, type StoreEvents } from "#core/events.ts";
import type { Log } from "#core/log.ts";
import { PARTS, type StoreFile } from "#governance/store.ts";
import { makeFolder } from "#platform/make-folder.ts";
import type { StoreOptions } from "#store/store-options.ts";
import { rollbackOf } from "#store/high-mark.ts";
import { setAside } from "#store/healing.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import { DamageError } from "#store/sealed-blob.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";

/** `path` is absolute; its folder is made where it is missing. */
export function governanceStore(
  path: string,
  log: Log,
  open: (options: StoreOptions) => Promise<OpenedStore> = openSupervisedStore,
  events: StoreEvents = NO_EVENTS,
): { readonly key: string; readonly file: StoreFile } {
  const file: StoreFile = {
    async open() {
      makeFolder(dirname(path), 0o700);
      const options = { path, parts: PARTS, nowMs: Date.now, log, isMarked: true, events };
      const openMarked = async () => ({ ...(await open(options)), rollback: rollbackOf(path) });
      try {
        return await openMarked();
      } catch (error) {
        if (!(error instanceof DamageError)) throw error;
        // Losing statistics is milder than losing the limits: begin with an empty store, and keep the damaged file for
        // recovery.
        log.error(
          `${messageOf(error)}; traffic control begins anew, the files are kept as ${path}.corrupt-…`,
        );
        for (const damaged of [path, `${path}.bak`]) setAside(damaged, Date.now());
        return await openMarked();
      }
    },
    sizeBytes: () => sizeOf(path) + sizeOf(`${path}-wal`),
  };
  return { key: path, file };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
