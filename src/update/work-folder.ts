/** A folder beside the versions for what an update makes, which one process has at a time. */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, messageOf } from "#core/errors.ts";
import { UpdateError } from "./update-error.ts";

const NAME = /^\.weir-update-(\d+)-(\d+)$/;

export interface WorkFolder extends AsyncDisposable {
  readonly path: string;
}

/**
 * Removes what processes that were killed have left. Throws `UpdateError` where another process is at it, or nothing can
 * be written here. Each makes its own before it looks for others: two that begin at once both see the other, and give up.
 */
export async function openWorkFolder(parent: string): Promise<WorkFolder> {
  const path = join(parent, `.weir-update-${process.pid}-${startOf(process.pid) ?? 0}`);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    throw unwritable(parent, error);
  }
  const remove = () => rm(path, { recursive: true, force: true });
  try {
    for (const name of readdirSync(parent)) await lookAt(parent, name, path);
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, [Symbol.asyncDispose]: remove };
}

async function lookAt(parent: string, name: string, own: string): Promise<void> {
  const [, pid, start] = NAME.exec(name) ?? [];
  const path = join(parent, name);
  if (pid === undefined || path === own || !lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (String(startOf(Number(pid))) === start)
    throw new UpdateError(`process ${pid} is making an update already (${path})`);
  await rm(path, { recursive: true, force: true });
}

function unwritable(parent: string, error: unknown): UpdateError {
  const code = errnoOf(error) ?? "";
  if (code === "EEXIST") return new UpdateError("this process is making an update already");
  if (!["EACCES", "EPERM", "EROFS"].includes(code))
    return new UpdateError(`${parent}: ${messageOf(error)}`, { cause: error });
  return new UpdateError(
    `${parent} cannot be written by this process (${code}, user ${process.getuid?.() ?? "unknown"}): run weir update as the user who installed it, such as root; a unit with ProtectSystem=strict keeps the running weir from it`,
    { cause: error },
  );
}

/** Tells a process from a later one with its number: its start in clock ticks, 0 where the system does not say; null: there is none. */
function startOf(pid: number): number | null {
  const stat = `/proc/${pid}/stat`;
  if (existsSync("/proc/self/stat")) {
    try {
      // proc_pid_stat(5): the name in parentheses may hold anything; the start is field 22.
      const text = readFileSync(stat, "latin1");
      return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[19]);
    } catch {
      return null;
    }
  }
  try {
    process.kill(pid, 0);
    return 0;
  } catch (error) {
    return errnoOf(error) === "EPERM" ? 0 : null;
  }
}
