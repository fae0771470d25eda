/** Versions beside each other, and the link that says which one is in force. */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { folderOf, isBuild, type Installation } from "./installation.ts";
import { UpdateError } from "./update-error.ts";

export interface Switched {
  /** The former version is in force again, and the new one gone. */
  back(): Promise<void>;
}

/** What is not ours, or in use, stays. Throws `UpdateError` before anything is moved. */
export function refuseTaken({ parent }: Installation, version: string): void {
  const target = join(parent, folderOf(version));
  if (lstatSync(target, { throwIfNoEntry: false }) === undefined) return;
  if (!isBuild(target, version))
    throw new UpdateError(`${target} is there and is no weir ${version}: move it away`);
  const user = userOf(target);
  if (user !== null)
    throw new UpdateError(`process ${user} still runs from ${target}: wait for its end, or end it`);
}

/**
 * Puts `fresh` beside the version that runs and has the link lead to it, in one step. `work` is on the same file system.
 */
export function switchTo(fresh: string, version: string, at: Installation, work: string): Switched {
  const { parent, link, folder } = at;
  refuseTaken(at, version);
  refuseOtherLink(at);
  const target = join(parent, folderOf(version));
  if (existsSync(target)) renameSync(target, join(work, "before")); // of an update that was killed, or taken back
  renameSync(fresh, target);
  lead(link, folderOf(version), work);
  return {
    async back() {
      lead(link, basename(folder), work);
      await rm(target, { recursive: true, force: true });
    },
  };
}

/** Versions but these two, where no process runs from them. */
export function removeOlder({ parent, folder }: Installation, newest: string): void {
  for (const name of readdirSync(parent)) {
    const path = join(parent, name);
    const version = name.slice(folderOf("").length);
    const stays = path === folder || version === newest || !isBuild(path, version);
    if (!stays && userOf(path) === null) rmSync(path, { recursive: true, force: true });
  }
}

/** Another update has come in between. */
function refuseOtherLink({ link, folder }: Installation): void {
  if (realpathSync(link) !== folder)
    throw new UpdateError(`${link} leads to ${realpathSync(link)} by now: ask again with that weir`);
}

function lead(link: string, name: string, work: string): void {
  const made = join(work, "link");
  rmSync(made, { force: true });
  symlinkSync(name, made);
  renameSync(made, link);
}

/** The number of a process that runs from `folder`; null: none that can be seen. */
function userOf(folder: string): number | null {
  if (!existsSync("/proc/self/exe")) return null;
  for (const name of readdirSync("/proc"))
    if (/^\d+$/.test(name) && executableOf(Number(name))?.startsWith(`${folder}/`) === true)
      return Number(name);
  return null;
}

/** Null: it has ended, is another user's, or the system does not say. */
export function executableOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return null;
  }
}
