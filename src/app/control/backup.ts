/** Gathers what a backup holds from the parts that run. */
import { isAbsolute, relative, resolve } from "node:path";
import { encodeContents, type BackedUpStore, type BackupContents, type StoreRole } from "#backup/contents.ts";
import { sealBackup } from "#backup/sealing.ts";
import type { Config } from "#config/config.ts";
import type { BackupControl } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { JOURNAL_SUFFIX } from "#core/files.ts";
import type { Host } from "#host/host.ts";
import { VERSION } from "#version.ts";
import type { ControlEnv } from "./control-env.ts";

type BackupEnv = Pick<ControlEnv, "host" | "configFile" | "runtime" | "exclusively">;

export function backupControl(env: BackupEnv): BackupControl {
  return { make: async () => sealBackup(encodeContents(await gather(env)), null) };
}

/** While no configuration is put in force: the stores are those that its text names. */
function gather(env: BackupEnv): Promise<BackupContents> {
  const { host, runtime } = env;
  return env.exclusively(async () => {
    const createdAtMs = Date.now();
    await Promise.all([host.users.flush(), host.governance.flush()]);
    const stores: BackedUpStore[] = [];
    for (const [role, path] of storesOf(runtime().config, host)) {
      const snapshot = await host.stores.snapshot(resolve(host.home, path));
      if (snapshot === null) throw new ApiError(500, `the store of ${role} is not open at present`);
      stores.push({ role, path, parts: [...snapshot].map(([name, records]) => ({ name, records })) });
    }
    const configuration = await textOf(env);
    return { createdAtMs, version: VERSION, configuration, stores, choices: host.cache.choices() };
  });
}

/** Those of the home directory by paths relative to it: another instance has another one. */
function storesOf(
  { svc }: Config,
  { files, home, governance }: Host,
): readonly (readonly [StoreRole, string])[] {
  const users = svc === null ? null : files.resolve(svc.store);
  const found: readonly (readonly [StoreRole, string | null])[] = [
    ["users", users],
    ["journal", users === null ? null : users + JOURNAL_SUFFIX],
    ["policies", governance.storeKey],
  ];
  return found.flatMap(([role, path]) => {
    if (path === null) return [];
    const inHome = relative(home, path);
    return [[role, inHome.startsWith("..") || isAbsolute(inHome) ? path : inHome] as const];
  });
}

/** Null where it is no file. */
async function textOf({ configFile }: BackupEnv): Promise<string | null> {
  try {
    return (await configFile.view()).text;
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return null;
    throw error;
  }
}
