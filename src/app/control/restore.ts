/** A backup that comes by the Controller: looked at in a thread, and laid beside the state for the next start. */
import type { Config } from "#config/config.ts";
import { formatDiagnostic } from "#config/report.ts";
import type { RestoreAsker, RestoreControl, RestoreView } from "#core/control.ts";
import { ApiError, ConfigError, messageOf } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import { ReadingThread } from "#documents/thread.ts";
import type { Named, RestoreReply, RestoreRequest } from "#app/restore/messages.ts";
import { refuseOtherUpdate } from "#app/update-block.ts";
import type { ControlEnv } from "./control-env.ts";

const PROGRAM = { from: import.meta.url, source: "../restore/thread.ts", built: "restore-thread" };
const BOUNDS = { mostMs: 120_000, mostHeapMiB: 1024 };

type RestoreEnv = Pick<ControlEnv, "host" | "loader" | "configFile" | "runtime" | "exclusively" | "restart">;

export function restoreControl(env: RestoreEnv): RestoreControl {
  const thread = new ReadingThread(PROGRAM, { what: "reading the backup", bounds: BOUNDS });
  let isBusy = false;
  const ask = async (request: RestoreRequest): Promise<RestoreReply> => {
    if (isBusy) throw new ApiError(503, "another backup is being read");
    isBusy = true;
    try {
      return await thread.ask<RestoreReply>(request);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw new ApiError(400, `it cannot be restored: ${messageOf(error)}; nothing was changed`, {
        cause: error,
      });
    } finally {
      isBusy = false;
      thread.end(); // it has held secrets, and there will hardly be another
    }
  };
  const look = async (file: Uint8Array, key: string): Promise<readonly [RestoreReply, Config | null]> => {
    demandFile(env);
    const found = await ask({ file, key, stage: null });
    pathsOf(found, env);
    const config = await configIn(found, env);
    if (config !== null)
      refuseOtherUpdate(
        config,
        env.runtime().config,
        "the backup has another, which weir restore brings back",
      );
    return [found, config];
  };
  return {
    async look(file, key) {
      const [found, config] = await look(file, key);
      return viewOf(found, config, env);
    },
    async stage(file, key, sum, asker) {
      const [found] = await look(file, key);
      return env.exclusively(async () => {
        if ((await env.configFile.view()).trial !== null)
          throw new ApiError(409, "a configuration is on trial: confirm it or take it back first");
        await ask({ file, key, stage: { ...orderOf(found, env, asker), sum } });
        env.host.log.warning("restore: a backup lies beside the state; weir starts anew by it");
        return env.restart;
      });
    },
  };
}

/** Throws `ApiError` 400. */
function demandFile({ loader }: RestoreEnv): string {
  if (loader.file !== null) return loader.file.path;
  throw new ApiError(
    400,
    "weir was not started with a configuration file (-f), so a backup cannot be put in its place; weir restore can",
  );
}

function orderOf(found: RestoreReply, env: RestoreEnv, { caller, from }: RestoreAsker) {
  const { home } = env.host;
  const { name, token } = caller;
  return {
    home,
    file: demandFile(env),
    paths: pathsOf(found, env),
    by: token === null ? { kind: "owner" as const, name } : { kind: "token" as const, name, id: token.id },
    from,
  };
}

/** Where its stores go here, absolute. Throws `ConfigError` for a path beyond the safe ones. */
function pathsOf({ stores }: RestoreReply, { host }: RestoreEnv): readonly string[] {
  return stores.map(({ path }) => host.files.resolve(path));
}

/** As this version reads it here. Throws `ApiError` 400. */
async function configIn({ configuration }: RestoreReply, { loader }: RestoreEnv): Promise<Config | null> {
  if (configuration === null) return null;
  const { file, result } = await loader.text(configuration);
  if (result.errors === undefined) return result.config;
  const lines = result.errors.map((error) => formatDiagnostic(file, error));
  throw new ApiError(
    400,
    `it cannot be restored: its configuration has errors here; nothing was changed\n${lines.join("\n")}`,
  );
}

async function viewOf(found: RestoreReply, config: Config | null, env: RestoreEnv): Promise<RestoreView> {
  const present = env.runtime().config;
  const next = config ?? present;
  const { text } = await env.configFile.view();
  const listeners = next.listeners.map(({ name, protocol }) => ({ name, type: protocol.type }));
  const kept = new Set(listeners.map(({ name }) => name));
  return {
    sum: found.sum,
    createdAtMs: found.createdAtMs,
    version: found.version,
    configuration: found.configuration,
    isSameConfiguration: found.configuration === null || found.configuration === text,
    isOtherSignIn: next.controller.secret !== present.controller.secret,
    isOtherAddress: addressesOf(next) !== addressesOf(present),
    stores: found.stores,
    listeners,
    users: found.users.length,
    tokens: found.tokens.length,
    choices: found.choices,
    lost: {
      listeners: present.listeners.map(({ name }) => name).filter((name) => !kept.has(name)),
      users: namesBeyond(usersOf(env.host), found.users),
      tokens: namesBeyond(tokensOf(env.host), found.tokens),
    },
  };
}

function addressesOf({ controller }: Config): string {
  const { externalController, externalControllerTls, externalControllerUnix } = controller;
  return JSON.stringify([externalController, externalControllerTls, externalControllerUnix]);
}

function usersOf({ users }: Host): readonly Named[] {
  return (users.admin?.users(null) ?? []).map(({ id, name }) => ({ id, name }));
}

function tokensOf({ journal }: Host): readonly Named[] {
  return journal.secret === null ? [] : journal.tokens();
}

function namesBeyond(present: readonly Named[], kept: readonly Named[]): readonly string[] {
  const ids = new Set(kept.map(({ id }) => id));
  return present.filter(({ id }) => !ids.has(id)).map(({ name }) => name);
}
