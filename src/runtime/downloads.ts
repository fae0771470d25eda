/** How the core downloads lists and databases for itself: through a named outbound, or by the rules. */
import type { Config } from "#config/config.ts";
import type { Trust } from "#core/trust.ts";
import { fetchResource, type Fetched } from "#providers/fetch.ts";
import type { WrittenBook } from "#providers/own-copy.ts";
import type { EtagBook } from "#providers/resource.ts";
import type { ProfileCache } from "#store/profile-cache.ts";
import type { CoreDialers } from "./core-dialers.ts";

export interface Download {
  readonly url: string;
  /** A proxy or group; "": as the rules say. */
  readonly proxy: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly etag: string | null;
}

/** Throws `DialError`. */
export type Fetch = (download: Download, signal: AbortSignal) => Promise<Fetched>;

/** `onEnd` is called behind each download: what it took can be given back. */
export function openFetch(
  { general }: Config,
  coreDialers: CoreDialers,
  trust: Trust,
  onEnd: () => void,
): Fetch {
  return ({ proxy, ...download }, signal) => {
    const dialer = coreDialers.through(proxy);
    return fetchResource({ ...download, userAgent: general.globalUa, dialer, trust }, signal).finally(onEnd);
  };
}

/** ETags in the profile cache, each with the hash of the file's content: a file that was edited is fetched whole. */
export function etagBook(cache: ProfileCache): EtagBook {
  return {
    get(url, contentHash) {
      const kept = cache.get("etag", url);
      return kept?.startsWith(`${contentHash} `) === true ? kept.slice(contentHash.length + 1) : null;
    },
    set: (url, contentHash, etag) => cache.set("etag", url, `${contentHash} ${etag}`),
  };
}

/**
 * Survives restarts in the cache; without the cache, files that were written before count as foreign and are left
 * alone.
 */
export function writtenBook(cache: ProfileCache): WrittenBook {
  return {
    get: (file) => cache.get("written", file)?.split(" ") ?? [],
    set: (file, hashes) => cache.set("written", file, hashes.join(" ")),
  };
}
