/** FFI faults are crashes, so a test file does such work in a process of its own: `node FILE NAME`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const GOOD = "good";

export interface ChildOptions {
  /** Of the runtime. */
  readonly flags?: readonly string[];
  /** Put before the command, such as `ip netns exec name`. */
  readonly prefix?: readonly string[];
}

/** In that process: does the work of that name and says that it came to its end. False: this is not that process. */
export async function isChild(works: Readonly<Record<string, () => Promise<void>>>): Promise<boolean> {
  const work = works[process.argv[2] ?? ""];
  if (work === undefined) return false;
  await work();
  console.log(GOOD); // the process ends by itself then, where no handle of the event loop is left
  return true;
}

/** Runs the file in such a process; fails where it did not come to its end. */
export async function runAsChild(
  fileUrl: string,
  name: string,
  { flags = [], prefix = [] }: ChildOptions = {},
): Promise<void> {
  const words = ["--disable-warning=ExperimentalWarning", ...flags, fileURLToPath(fileUrl), name];
  const [program, ...args] = [...prefix, process.execPath, ...words] as [string, ...string[]];
  const { stdout } = await promisify(execFile)(program, args);
  assert.equal(stdout, `${GOOD}\n`);
}
