/** Between the main thread and the one that reads a backup. */
import type { StageTarget } from "#backup/stage.ts";
import type { StoreRole } from "#backup/contents.ts";

export interface RestoreRequest {
  readonly file: Uint8Array;
  /** A passphrase, or lines of age-keygen; "" is none. */
  readonly key: string;
  /** Null: it is only looked at. */
  readonly stage: StageOrder | null;
}

export interface StageOrder extends Omit<StageTarget, "stores"> {
  /** SHA-256 of the file that was looked at. */
  readonly sum: string;
  /** Where each store of the backup goes, absolute, in their order. */
  readonly paths: readonly string[];
}

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** What is in a backup. */
export interface RestoreReply {
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly sum: string;
  readonly createdAtMs: number;
  readonly version: string;
  readonly configuration: string | null;
  readonly stores: readonly {
    readonly role: StoreRole;
    readonly path: string;
    /** Records by table. */
    readonly counts: Readonly<Record<string, number>>;
  }[];
  readonly users: readonly (Named & { readonly listener: string })[];
  readonly tokens: readonly Named[];
  /** Groups with a selection. */
  readonly choices: number;
}
