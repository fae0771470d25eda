/** Where newer versions of the program come from, if the configuration says so. */
import type { Config } from "#config/config.ts";
import { DialError, messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { commandSource } from "#cli/update-source.ts";
import { findInstallation, ownFolder } from "#update/installation.ts";
import { lookForUpdate } from "#update/update.ts";
import { VERSION } from "#version.ts";
import { bad, fine, type Finding } from "./finding.ts";

/** None where there is no block `update`. The folder is asked past `update.proxy`, as by `weir update -direct`. */
export async function updateFindings(config: Config, files: SafeFiles): Promise<readonly Finding[]> {
  if (config.update === null) return [];
  return [await release(config, files), ...installation()];
}

async function release(config: Config, files: SafeFiles): Promise<Finding> {
  try {
    const source = await commandSource(config, files, true);
    const { version, age } = await lookForUpdate(source, VERSION, new AbortController().signal);
    const words = {
      newer: `newer than ${VERSION}: weir update takes it`,
      same: "which runs",
      older: `older than ${VERSION}`,
      unknown: `which cannot be told to be newer than ${VERSION}`,
    };
    return fine("updates", `${source.host} has ${version}, ${words[age]}`);
  } catch (error) {
    if (error instanceof DialError)
      return bad("warning", "updates", messageOf(error), [
        "newer versions are not found",
        "correct update.url, or see why this machine does not reach it; weir itself may reach it by update.proxy",
      ]);
    return bad("error", "updates", messageOf(error), [
      "nothing of this release folder is taken",
      "compare update.public-key with the key of those who make the releases; if it is theirs, what the server gives out is not",
    ]);
  }
}

function installation(): readonly Finding[] {
  try {
    findInstallation(ownFolder());
    return [];
  } catch (error) {
    return [
      bad("warning", "updates", messageOf(error), [
        "weir update and POST /upgrade refuse on this machine",
        "take the block update out of the configuration, or install weir by deploy/install.sh",
      ]),
    ];
  }
}
