/** A program that was unpacked is asked who it is, and whether it takes the configuration, before it is put to use. */
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/errors.ts";
import { isBuild } from "./installation.ts";
import { UpdateError } from "./update-error.ts";

const VERSION_MS = 60_000;
const CHECK_MS = 180_000;
/** Of what it prints. */
const MOST_BYTES = 1024 * 1024;
const SHOWN_LINES = 10;

/**
 * `folder` has the name of its version. `checkArgs`: those of `weir -t` for the configuration in force; null: there is none.
 * Rejects with `UpdateError`.
 */
export async function tryProgram(
  folder: string,
  version: string,
  checkArgs: readonly string[] | null,
): Promise<void> {
  const program = join(folder, "weir");
  await access(program, constants.X_OK).catch(() => {
    throw new UpdateError("the archive has no program weir");
  });
  if (!isBuild(folder, version)) throw new UpdateError(`version.txt of the archive does not say ${version}`);
  const said = await run(program, ["-v"], VERSION_MS, "the new program does not run on this machine");
  const [, , found] = said.split(" ");
  if (found !== version)
    throw new UpdateError(`the program in the archive calls itself ${found}, and the manifest ${version}`);
  if (checkArgs !== null)
    await run(program, checkArgs, CHECK_MS, `weir ${version} does not take the configuration`);
}

function run(program: string, args: readonly string[], timeout: number, what: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = execFile(program, args, { timeout, maxBuffer: MOST_BYTES }, (error, stdout, stderr) => {
    if (error === null) return resolve(stdout);
    const lines = `${stdout}${stderr}`.trim().split("\n").slice(0, SHOWN_LINES).join("\n");
    reject(new UpdateError(`${what}: ${lines === "" ? messageOf(error) : lines}`, { cause: error }));
  });
  child.stdin?.end(); // a configuration that came by standard input is not there any more
  return promise;
}
