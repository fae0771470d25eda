/** How the store of traffic control is opened and left. */
import { messageOf, StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Checkpoint } from "./checkpoint.ts";
import type { ActiveGovernance, OpenedLate } from "./running.ts";
import type { GovernanceSettings } from "./settings.ts";
import { MemoryStore, type StoreFile } from "./store.ts";

/** Rejects with `StoreError`. */
export async function openStoreFile(
  file: StoreFile,
  settings: GovernanceSettings,
  log: Log,
): Promise<OpenedLate> {
  checkSize(file.sizeBytes(), settings);
  const { store, records, rollback = null } = await file.open();
  const checkpoint = new Checkpoint(store, records, file, settings.maxStoreSizeBytes, log);
  return { checkpoint, records, rollback };
}

/** Never rejects. */
export async function commitAndClose(running: ActiveGovernance, log: Log): Promise<void> {
  try {
    await running.commit();
  } catch (error) {
    log.error(`traffic control: the last counts are lost: ${messageOf(error)}`);
  }
  await closeStore(running.parts, log);
}

/** Never rejects. */
export async function closeStore({ checkpoint }: Pick<OpenedLate, "checkpoint">, log: Log): Promise<void> {
  try {
    await checkpoint.close();
  } catch (error) {
    log.error(`traffic control: closing the store: ${messageOf(error)}`);
  }
}

/** Stands in for a store that cannot be opened yet. */
export function openNowhere(maxBytes: number, log: Log): OpenedLate {
  const store = new MemoryStore();
  const { records } = store;
  const nowhere: StoreFile = { open: async () => ({ store, records }), sizeBytes: () => 0 };
  return { checkpoint: new Checkpoint(store, records, nowhere, maxBytes, log), records, rollback: null };
}

/** Throws `StoreError`. */
export function checkSize(sizeBytes: number, { store, maxStoreSizeBytes }: GovernanceSettings): void {
  if (sizeBytes > maxStoreSizeBytes)
    throw new StoreError(`${store} has ${sizeBytes} bytes, more than max-store-size ${maxStoreSizeBytes}`);
}
