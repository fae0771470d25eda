/** From a signed manifest to another version that serves, or nothing has changed. `README.md` has the steps. */
import { join } from "node:path";
import { messageOf } from "#core/errors.ts";
import { folderOf, type Installation } from "./installation.ts";
import { fileFor, type ReleaseFile } from "./manifest.ts";
import { tryProgram } from "./new-program.ts";
import type { ReleaseSource } from "./release-source.ts";
import { refuseTaken, removeOlder, switchTo } from "./switching.ts";
import { unpackBuild } from "./unpack.ts";
import { UpdateError } from "./update-error.ts";
import { ageOf, type Age } from "./versions.ts";
import { openWorkFolder } from "./work-folder.ts";

/** What the release folder has at present. */
export interface Offered {
  readonly version: string;
  /** What it is to the version that runs. */
  readonly age: Age;
  /** For this machine. */
  readonly file: ReleaseFile;
}

/** Asks the release folder; rejects with `UpdateError` or `DialError`. `version`: the one that runs. */
export async function lookForUpdate(
  source: ReleaseSource,
  version: string,
  signal: AbortSignal,
): Promise<Offered> {
  const manifest = await source.manifest(signal);
  const file = fileFor(`${process.platform}-${process.arch}`, manifest);
  return { version: manifest.version, age: ageOf(manifest.version, version), file };
}

export interface UpdateEnv {
  readonly source: ReleaseSource;
  readonly installation: Installation;
  /** The arguments of `weir -t` for the configuration in force; null: there is none to check. */
  readonly checkArgs: readonly string[] | null;
  /** Has the program at this path take over from the weir that runs; answers with why it did not. Null: none runs, or it is to go on. */
  readonly takeOver: ((program: string) => Promise<string | null>) | null;
  readonly say: (text: string) => void;
}

/** Puts what was offered into force. Rejects with nothing changed; `UpdateError`, `DialError` or `ProtocolError`. */
export async function update(offered: Offered, env: UpdateEnv, signal: AbortSignal): Promise<void> {
  const { source, installation, checkArgs, takeOver, say } = env;
  const { version, file } = offered;
  refuseTaken(installation, version);
  await using work = await openWorkFolder(installation.parent);
  const archive = join(work.path, "archive.tar.gz");
  say(`downloading ${file.name}, ${Math.ceil(file.size / 1024 / 1024)} MiB, from ${source.host}`);
  await source.save(file, archive, signal);
  const fresh = join(work.path, folderOf(version));
  await unpackBuild(archive, fresh);
  await tryProgram(fresh, version, checkArgs);
  signal.throwIfAborted();
  const switched = switchTo(fresh, version, installation, work.path);
  say(`${installation.link} leads to ${version}`);
  removeOlder(installation, version);
  const failure = takeOver === null ? null : await asked(takeOver, join(installation.link, "weir"));
  if (failure === null) return;
  await switched.back();
  throw new UpdateError(
    `weir ${version} did not take over, ${installation.version} goes on: ${failure}; weir update -later leaves it to the next start`,
  );
}

async function asked(takeOver: (program: string) => Promise<string | null>, program: string) {
  try {
    return await takeOver(program);
  } catch (error) {
    return messageOf(error);
  }
}

/** Throws `UpdateError` where `offered` is not to be taken: a server that gives out an old version takes fixes away. */
export function refuseOld({ version, age }: Offered, ours: string, allowOlder: boolean): void {
  if (age === "newer" || (allowOlder && age !== "same")) return;
  if (age === "same") throw new UpdateError(`${version} is the version that runs: there is nothing newer`);
  const what = age === "older" ? "is older than" : "cannot be told to be newer than";
  throw new UpdateError(`${version} ${what} ${ours}, which runs: -allow-older takes it, where that is meant`);
}
