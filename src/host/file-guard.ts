/** What weir knows of the files that it may write: those it has besides a configuration, and what lies there by now. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/errors.ts";
import type { FileGuard, WrittenKind } from "#core/files.ts";
import { isGeoFile } from "#geodata/geodata.ts";
import { downloadFault } from "#providers/own-copy.ts";
import { pathsOfStore, refuseForeignFiles } from "#store/own-file.ts";
import { STORE_PARTS } from "./store-parts.ts";

/** In the home directory, under a name of our own: other programs have files there. */
export const CACHE_FILE = "weir-cache.db";
/** Of other programs of the ecosystem, which use the same home directory. */
export const FOREIGN_CACHE_FILE = "cache.db";
export const SECRET_FILE = "controller-secret";

/** `source`: the configuration in use; null: it is no file. */
export function openFileGuard(home: string, source: string | null): FileGuard {
  const known = [
    ...(source === null ? [] : [{ title: "the configuration", file: source }]),
    ...["config.yaml", CACHE_FILE, SECRET_FILE, FOREIGN_CACHE_FILE].map((name) => ({
      title: name,
      file: join(home, name),
    })),
    ...pathsBeside(join(home, CACHE_FILE)),
    { title: "the home directory", file: home },
  ];
  return {
    get known() {
      return [...known, ...geodataIn(home)];
    },
    pathsOfStore,
    fault,
  };
}

function pathsBeside(file: string): FileGuard["known"] {
  return ["-wal", "-shm"].map((suffix) => ({ title: "weir's cache", file: file + suffix }));
}

function geodataIn(home: string): FileGuard["known"] {
  try {
    const names = readdirSync(home).filter(isGeoFile);
    return names.map((name) => ({ title: `the database ${name}`, file: join(home, name) }));
  } catch {
    return []; // a home directory that does not exist has none
  }
}

function fault(kind: WrittenKind, path: string): string | null {
  try {
    if (kind === "users" || kind === "journal" || kind === "policies")
      refuseForeignFiles(path, STORE_PARTS[kind]);
    else if (kind === "download") return downloadFault(path);
    else if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false)
      return `${path} is no folder`;
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
