import { ApiError } from "#core/errors.ts";
import type { StorageControl } from "#core/control.ts";
import type { ProfileCache } from "#store/profile-cache.ts";

/** Dashboards keep a handful of small documents; a client that makes up keys must not fill the disk. */
const MAX_KEYS = 256;

/** The free key-value area of dashboards, kept in the profile cache. */
export function storageControl(cache: ProfileCache): StorageControl {
  return {
    get: (key) => cache.get("storage", key),
    async put(key, json) {
      cache.demand();
      if (cache.get("storage", key) === null && cache.count("storage") >= MAX_KEYS)
        throw new ApiError(413, `the storage holds ${MAX_KEYS} keys at most; delete one first`);
      cache.set("storage", key, json);
    },
    async delete(key) {
      cache.demand();
      cache.delete("storage", key);
    },
  };
}
