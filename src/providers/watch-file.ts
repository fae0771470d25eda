import { watch, type FSWatcher } from "node:fs";
import { basename, dirname } from "node:path";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";

/** Editors and tools write in several steps; the file is read after this time without a change. */
const SETTLE_MS = 200;

/** Watches the folder, because an atomic replace gives the name a new file. Where that cannot be done it says so. */
export function watchFile(path: string, log: Log, on: () => void): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let watcher: FSWatcher | null = null;
  try {
    watcher = watch(dirname(path), { persistent: false }, (_, name) => {
      if (name !== null && name !== basename(path)) return;
      clearTimeout(timer);
      timer = setTimeout(on, SETTLE_MS).unref();
    });
    watcher.on("error", (error) => log.warning(`watching ${path}: ${messageOf(error)}`));
  } catch (error) {
    log.warning(`changes of ${path} will not be seen: ${messageOf(error)}`);
  }
  return {
    [Symbol.dispose]() {
      clearTimeout(timer);
      watcher?.close();
    },
  };
}
