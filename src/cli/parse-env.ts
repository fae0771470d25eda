/** What a configuration is read with: the same on the main thread and in the thread that reads a large one. */
import type { ParseEnv } from "#config/parse.ts";
import { openSafeFiles, type SafePathOptions } from "#config/safe-path.ts";
import type { FileGuard, SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import { GROUP_KINDS } from "#groups/index.ts";
import { openFileGuard } from "#host/file-guard.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { VERSION } from "#version.ts";

export const REGISTRIES = { protocols: PROTOCOLS, groupKinds: GROUP_KINDS, ruleTypes: RULE_TYPES };

/** Plain data, so that it can be sent to a thread. */
export interface ParseSettings extends Omit<SafePathOptions, "log"> {
  readonly geodataMode: boolean;
  /** The configuration in use; null: it is no file. */
  readonly source: string | null;
}

export function openParseEnv(
  { geodataMode, source, ...paths }: ParseSettings,
  log: Log,
): ParseEnv & { readonly files: SafeFiles; readonly guard: FileGuard } {
  return {
    registries: REGISTRIES,
    files: openSafeFiles({ ...paths, log }),
    userAgent: `clash.meta/${VERSION} weir`,
    geodataMode,
    guard: openFileGuard(paths.home, source),
  };
}
