import { ABORTED, errnoOf, messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { findInstallation, ownFolder, type Installation } from "#update/installation.ts";
import type { ReleaseSource } from "#update/release-source.ts";
import { executableOf } from "#update/switching.ts";
import { lookForUpdate, refuseOld, update, type Offered } from "#update/update.ts";
import { UpdateError } from "#update/update-error.ts";
import { askForUpgrade, runningIn } from "#upgrade/requests.ts";
import { DRAIN_MS } from "#upgrade/upgrades.ts";
import { VERSION } from "#version.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { linesOf, setUp, type Setup } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";
import { commandSource } from "./update-source.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  check: { kind: "switch", help: "only say what the release folder has; nothing is changed" },
  "allow-older": { kind: "switch", help: "take a version that is older, or that cannot be told to be newer" },
  later: { kind: "switch", help: "the weir that runs goes on; its next start is the new version" },
  direct: { kind: "switch", help: "download past update.proxy" },
};

export const UPDATE_USAGE = usageText(
  `usage: weir update [flags]     the newest version from update.url of the configuration takes the place of this one, and
                             of the weir that runs in the home directory; exit code 0: it does, or there is nothing
                             newer, 1: nothing has changed
`,
  FLAGS,
);

/** `weir update`. */
export async function updateCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) throw new UsageError(UPDATE_USAGE);
  try {
    const setup = setUp(flags, env, SILENT);
    const source = await sourceOf(setup, flags.on("direct"));
    const stop = new AbortController();
    const onSignal = (): void => stop.abort(ABORTED);
    process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
    const offered = await lookForUpdate(source, VERSION, stop.signal);
    if (flags.on("check")) return say(textOf(offered));
    return await take(offered, { setup, source, flags, signal: stop.signal });
  } catch (error) {
    process.stderr.write(`nothing has changed: ${messageOf(error)}\n`);
    return 1;
  }
}

interface Taking {
  readonly setup: Setup;
  readonly source: ReleaseSource;
  readonly flags: ParsedFlags;
  readonly signal: AbortSignal;
}

async function take(offered: Offered, { setup, source, flags, signal }: Taking): Promise<number> {
  const installation = findInstallation(ownFolder());
  const running = flags.on("later") ? null : await runningFrom(installation, setup.home);
  if (offered.age === "same") return await catchUp(installation, running, setup.home);
  refuseOld(offered, VERSION, flags.on("allow-older"));
  const takeOver =
    running === null ? null : (program: string): Promise<string | null> => ask(setup.home, program);
  await update(offered, { source, installation, checkArgs: checkArgsOf(setup), takeOver, say }, signal);
  const what = running === null ? "its next start is" : "it runs as";
  return say(`updated: ${what} ${offered.version}, in place of ${VERSION}`);
}

/** Of an update that was interrupted before the weir that runs was replaced, or was made with `-later`. */
async function catchUp({ link, folder }: Installation, running: string | null, home: string) {
  if (running === null || running === folder)
    return say(`${VERSION} is the newest version: nothing has changed`);
  const failure = await ask(home, `${link}/weir`);
  if (failure !== null) throw new UpdateError(failure);
  return say(`${VERSION} was in place already, and has taken over from the weir that ran`);
}

/** The version's folder of the weir that runs in `home`; null: none that was installed here. */
async function runningFrom({ parent }: Installation, home: string): Promise<string | null> {
  const pid = await runningIn(home);
  const executable = pid === null ? null : executableOf(pid);
  const [, folder] = /^(.+)\/lib\/node$/.exec(executable ?? "") ?? [];
  return folder?.startsWith(`${parent}/weir-`) === true ? folder : null;
}

async function ask(home: string, to: string): Promise<string | null> {
  try {
    const answer = await askForUpgrade(home, { to, drainMs: DRAIN_MS });
    return answer.done ? null : answer.reason;
  } catch (error) {
    if (["ENOENT", "ECONNREFUSED"].includes(errnoOf(error) ?? "")) return "the weir that ran has ended";
    throw error;
  }
}

async function sourceOf(setup: Setup, isDirect: boolean): Promise<ReleaseSource> {
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new UpdateError(linesOf(file, result.errors).join("\n"));
  return await commandSource(result.config, setup.files, isDirect);
}

/** What the new program checks; null where it comes by no file that it could read. */
function checkArgsOf({ home, source }: Setup): readonly string[] | null {
  if (source.file === null || source.isNew !== undefined) return null;
  return ["-t", "-d", home, "-f", source.file];
}

function textOf({ version, age }: Offered): string {
  const words = {
    newer: `${version} is newer than ${VERSION}, which runs: weir update takes it`,
    same: `${VERSION} is the newest version`,
    older: `${version} is older than ${VERSION}, which runs: nothing newer is there`,
    unknown: `${version} is there, and cannot be told to be newer than ${VERSION}, which runs`,
  };
  return words[age];
}

function say(text: string): 0 {
  process.stdout.write(`${text}\n`);
  return 0;
}
