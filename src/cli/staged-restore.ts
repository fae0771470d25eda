/** A restore that was laid beside the state by the Controller, at the start that puts it in force. */
import { join } from "node:path";
import { finishRestore, settle, type OtherFiles, type Outcome } from "#backup/put-in-force.ts";
import type { RestorePlan } from "#backup/staged-plan.ts";
import { messageOf, StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { CACHE_FILE } from "#host/file-guard.ts";
import type { Host } from "#host/host.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { ConfigFile } from "./config-file.ts";

/** Before anything of the state is read. Rejects where it cannot be told what the state is. */
export async function restoreAtStart(home: string, log: Log): Promise<Outcome | null> {
  const choices = join(home, CACHE_FILE);
  const files: OtherFiles = {
    choices,
    prepare: preparedFile,
    writeChoices(made) {
      using cache = new ProfileCache(choices, log);
      for (const bucket of ["selected", "storage"] as const)
        cache.setAll(bucket, Object.entries(made[bucket]));
    },
  };
  try {
    const outcome = await finishRestore(home, files);
    if (outcome?.kind === "failed")
      log.error(`restore: not done, everything is as it was: ${outcome.reason}`);
    return outcome;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    log.error(`restore: it waits for another start: ${messageOf(error)}`); // another weir has the state
    return null;
  }
}

/** The program runs by what was restored, or by what it had before: said where an operator looks. */
export async function reportRestore(outcome: Outcome | null, { home, journal, log }: Host): Promise<void> {
  if (outcome === null) return;
  const { plan } = outcome;
  const reason = outcome.kind === "failed" ? outcome.reason : null;
  const made = new Date(plan.backup.created_at).toISOString();
  if (reason === null) {
    settle(home);
    log.info(`restore: the backup of ${made} by weir ${plan.backup.version} is in force; ${keptText(plan)}`);
  }
  journal.sinks.restored(plan.backup.created_at, reason);
  const { kind, name, id } = plan.by;
  await journal.record({
    actor: id === undefined ? { kind, name } : { kind, name, id },
    from: plan.from,
    request: "",
    action: reason === null ? "restore" : "restore.failed",
    target: `backup of ${made}`,
    after: { version: plan.backup.version, ...(reason === null ? {} : { reason }) },
  });
}

function keptText({ stores }: RestorePlan): string {
  return stores.length === 0
    ? "no store was in it"
    : `what was there is ${stores.map(({ aside }) => aside).join(", ")}`;
}

const preparedFile: OtherFiles["prepare"] = async (path, bytes) => {
  const file = new ConfigFile(path);
  const present = await file.read();
  return Buffer.from(bytes).equals(present.bytes) ? null : file.prepare(bytes, present.hash);
};
