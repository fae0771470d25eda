/** How the store of traffic control is opened and left. */
import { messageOf, StoreError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { SteadyTime } from "#lib/steady-time.ts";
import { Checkpoint, loadState } from "./checkpoint.ts";
import type { GovernanceClock } from "./clock.ts";
import type { ActiveGovernance, OpenedLate } from "./running.ts";
import type { GovernanceSettings } from "./settings.ts";
import { MemoryStore, type StoreFile } from "./store.ts";

export interface OpeningEnv {
  readonly clock: GovernanceClock;
  readonly log: Log;
}

/** What is kept is more than `max-store-size`. */
export class TooLargeError extends StoreError {}

/** Rejects with `StoreError`. */
export async function openStoreFile(
  file: StoreFile,
  settings: GovernanceSettings,
  { clock, log }: OpeningEnv,
): Promise<OpenedLate> {
  const { store, records, rollback = null } = await file.open();
  const checkpoint = new Checkpoint(store, records, file, settings.maxStoreSizeBytes, log);
  try {
    const books = () => loadState(records, new SteadyTime(clock), log);
    await checkSize(checkpoint, settings, () => checkpoint.shrink(books, Math.floor(clock.wallMs() / 1000)));
  } catch (error) {
    await closeStore({ checkpoint }, log);
    throw error;
  }
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

/** Rejects with `StoreError`: with `TooLargeError` where `shrink`, which a larger file is given, is not enough. */
export async function checkSize(
  checkpoint: Pick<Checkpoint, "storeBytes">,
  { store, maxStoreSizeBytes }: GovernanceSettings,
  shrink: () => Promise<void>,
): Promise<void> {
  if (checkpoint.storeBytes <= maxStoreSizeBytes) return;
  await shrink();
  const { storeBytes } = checkpoint;
  if (storeBytes > maxStoreSizeBytes)
    throw new TooLargeError(
      `${store} has ${storeBytes} bytes, more than max-store-size ${maxStoreSizeBytes}`,
    );
}
