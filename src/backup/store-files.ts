/** The files of a store, moved and removed together, while the lock is held or not wanted. */
import { existsSync, renameSync, rmSync } from "node:fs";
import { pathsOfStore } from "#store/own-file.ts";

/** What stands behind the path of a store in the names of its files, but for the lock. */
export function suffixesOf(path: string): readonly string[] {
  return pathsOfStore(path).flatMap((file) => (file.endsWith(".lock") ? [] : [file.slice(path.length)]));
}

export function removeFiles(path: string): void {
  for (const suffix of suffixesOf(path)) rmSync(path + suffix, { force: true });
}

export function moveFiles(from: string, to: string): void {
  for (const suffix of suffixesOf(from))
    if (existsSync(from + suffix)) renameSync(from + suffix, to + suffix);
}

/**
 * Where what is there is kept aside. Nothing is there yet, also where two restores come within a second of a clock that may
 * be set back.
 */
export function asideOf(path: string, nowMs: number): string {
  const wanted = `${path}.before-restore-${Math.trunc(nowMs / 1000)}`;
  let aside = wanted;
  for (let at = 2; suffixesOf(aside).some((suffix) => existsSync(aside + suffix)); at++)
    aside = `${wanted}-${at}`;
  return aside;
}
