import { lstatSync, readFileSync, realpathSync, watch, type FSWatcher } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, delimiter, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { ConfigError, messageOf, errnoOf } from "#core/errors.ts";
import { isPemText, type SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";

export interface SafePathOptions {
  /** Absolute path of the home directory; relative paths in the file start there. */
  readonly home: string;
  /** More folders that may be named (`SAFE_PATHS`). */
  readonly safePaths?: readonly string[];
  /** `SKIP_SAFE_PATH_CHECK`: any path may be named. */
  readonly unchecked?: boolean;
  /** For warnings about watched files that cannot be read. */
  readonly log: Log;
}

/** The environment's part of the options; it is read here and nowhere else. */
export function safePathEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): Pick<SafePathOptions, "safePaths" | "unchecked"> {
  const folders = (environment["SAFE_PATHS"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return { safePaths: folders, unchecked: environment["SKIP_SAFE_PATH_CHECK"]?.toLowerCase() === "true" };
}

/** PEM files are small; more than this is something else. */
const LARGEST_PEM_BYTES = 1024 * 1024;
/** Editors and ACME clients touch a file several times in a row; the last state counts. */
const SETTLE_MS = 200;

/**
 * Files below the home directory and the safe paths. What counts is where a path really leads: symbolic links are
 * followed, and for a file that does not exist yet its nearest existing folder decides.
 */
export function openSafeFiles({ home, safePaths = [], unchecked = false, log }: SafePathOptions): SafeFiles {
  const allowed = [home, ...safePaths].map((folder) => resolve(home, folder));
  const safe: SafeFiles = {
    resolve(path) {
      const absolute = resolve(home, path);
      if (path.includes("\0")) throw new ConfigError("a path must not hold a NUL");
      if (unchecked) return absolute;
      const real = realPath(absolute);
      if (allowed.some((folder) => isInside(real, realPath(folder)))) return absolute;
      throw new ConfigError(
        `path ${path} is not inside a safe path; allowed: ${allowed.join(", ")} (SAFE_PATHS adds more)`,
      );
    },
    readPem: async (textOrPath) => (isPemText(textOrPath) ? textOrPath : readSmall(safe.resolve(textOrPath))),
    watchPem: (textOrPath, on) =>
      isPemText(textOrPath) ? { [Symbol.dispose]() {} } : watchText(safe.resolve(textOrPath), on, log),
  };
  return safe;
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!isAbsolute(way) && way !== ".." && !/^\.\.[/\\]/.test(way));
}

/** Where the path leads; what does not exist is appended to the real path of what does. */
function realPath(path: string): string {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...missing);
    } catch (error) {
      const code = errnoOf(error);
      // A link that leads nowhere, or in a circle, could lead anywhere tomorrow.
      if (code !== "ENOENT" && code !== "ENOTDIR") throw new ConfigError(`path ${path}: ${messageOf(error)}`);
      if (dirname(at) === at) return path;
      refuseDanglingLink(at, path);
      missing.unshift(basename(at));
    }
  }
}

/** `at` does not lead anywhere: is it a link all the same? */
function refuseDanglingLink(at: string, path: string): void {
  if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw new ConfigError(`path ${path}: ${at} is a link that leads nowhere`);
}

async function readSmall(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > LARGEST_PEM_BYTES) throw new Error("larger than 1 MiB");
    return bytes.toString("utf8");
  } catch (error) {
    throw new ConfigError(`${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Watches the folder, not the file: an atomic replace gives the name a new file, and a watch of the old one would fall
 * silent. A folder that is replaced itself (a link swapped to a new release) shows as the content differing at the next event.
 */
function watchText(path: string, on: (text: string) => void, log: Log): Disposable {
  let timer: NodeJS.Timeout | null = null;
  let last = contentNow(path); // at once, so that no change slips in between
  let closed = false;
  const settled = async (): Promise<void> => {
    try {
      const text = await readSmall(path);
      if (closed || text === last) return;
      last = text;
      on(text);
    } catch (error) {
      if (!closed) log.warning(`keeping the last good content: ${messageOf(error)}`);
    }
  };
  const watcher = openWatcher(dirname(path), log, (name) => {
    if (name !== null && name !== basename(path) && !name.startsWith("..")) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => void settled(), SETTLE_MS).unref();
  });
  return {
    [Symbol.dispose]() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      watcher?.close();
    },
  };
}

function contentNow(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null; // not there or not readable yet: anything that comes is new
  }
}

function openWatcher(folder: string, log: Log, on: (name: string | null) => void): FSWatcher | null {
  try {
    const watcher = watch(folder, { persistent: false }, (_, name) => on(name));
    watcher.on("error", (error) => log.warning(`watching ${folder}: ${messageOf(error)}`));
    return watcher;
  } catch (error) {
    log.warning(`changes in ${folder} will not be seen: ${messageOf(error)}`);
    return null;
  }
}
