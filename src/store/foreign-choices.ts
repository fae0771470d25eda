import { readFileSync, statSync } from "node:fs";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { readBoltBucket } from "./bolt-file.ts";

/** A cache of choices and addresses is far smaller; a larger one is left unread. */
const MOST_BYTES = 64 * 1024 * 1024;

/** The members chosen in groups, from the bbolt cache of mihomo, which is only read; none where there is no such file. */
export function foreignSelections(path: string, log: Log): ReadonlyMap<string, string> {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile() || stats.size > MOST_BYTES) return new Map();
  try {
    return readBoltBucket(readFileSync(path), "selected");
  } catch (error) {
    log.debug(`${path}: choices cannot be read: ${messageOf(error)}`);
    return new Map();
  }
}
