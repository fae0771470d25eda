/**
 * Who this process is to the fleet. The epoch is raised and written to the state file before anything is done under it, so
 * that an epoch with a number names one ledger entry for ever, and a copied state file is noticed.
 */
import { randomUUID } from "node:crypto";
import { StoreError } from "#core/errors.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import { FLEET } from "#users/records.ts";

export interface NodeIdentity {
  readonly nodeId: string;
  /** Of this process; never used before, and never by another one. */
  readonly epoch: number;
  /** Differs for every process, also for two that have copies of one state file. */
  readonly instance: string;
}

interface StoredIdentity {
  readonly node_id: string;
  readonly epoch: number;
}

const KEY = "node";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** On the medium when this settles. Rejects with `StoreError`. */
export async function raiseEpoch({ store, records }: OpenedStore): Promise<NodeIdentity> {
  const [, value] = records.get(FLEET)?.find(([key]) => key === KEY) ?? [];
  const before = value === undefined ? { node_id: randomUUID(), epoch: 0 } : decode(value);
  const { node_id: nodeId } = before;
  const epoch = before.epoch + 1;
  const stored: StoredIdentity = { node_id: nodeId, epoch };
  const record = { part: FLEET, key: KEY, value: Buffer.from(JSON.stringify(stored)) };
  await store.commit([record], { backup: true });
  return { nodeId, epoch, instance: randomUUID() };
}

function decode(value: Buffer): StoredIdentity {
  const stored: StoredIdentity = JSON.parse(value.toString());
  const isSound = UUID.test(stored.node_id) && Number.isSafeInteger(stored.epoch) && stored.epoch > 0;
  if (!isSound) throw new StoreError("state of this node in the fleet: the record contradicts itself");
  return stored;
}
