/**
 * The block `update` says whose programs run on this machine, as weir's user or as who calls `weir update`. It is changed in
 * the file, by those who have access to the machine: no secret of the Controller does that (docs/adr/0097).
 */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "#config/config.ts";
import { ApiError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";

type WithUpdate = Pick<Config, "update">;

/** For what would be written into the file; `instead`: what would be right. Throws `ApiError` 403. */
export function refuseOtherUpdate(
  next: WithUpdate,
  present: WithUpdate,
  instead = "edit the file on the machine, then reload",
): void {
  if (isDeepStrictEqual(next.update, present.update)) return;
  throw new ApiError(403, `update: the Controller does not change this block: ${instead}`);
}

/** For what comes into force until the next start: the block stays what it is. */
export function keepUpdate(next: Config, present: WithUpdate, log: Log): Config {
  if (isDeepStrictEqual(next.update, present.update)) return next;
  if (next.update !== null)
    log.warning("update: the Controller does not change this block: it stays as the file has it");
  return { ...next, update: present.update };
}
