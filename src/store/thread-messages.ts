/** What a store's thread and its owner say to each other. */
import { messageOf, StoreError } from "#core/errors.ts";
import type { LogEventLevel } from "#core/log.ts";
import { UndecidedError } from "./cut-log.ts";
import { type Change, ConflictError } from "./kv.ts";
import { DamageError } from "./sealed-blob.ts";
import { ForeignFileError } from "./sqlite-file.ts";
import type { MessagePort } from "node:worker_threads";

/** What the threads of one store have in common; each has its end of the port. */
export interface Link {
  readonly port: MessagePort;
  /** Two words: how many pieces of work were asked for, and how many answered. */
  readonly words: SharedArrayBuffer;
}

/** Of the thread that has the primary file, and obeys the other one. */
export interface SecondThreadData {
  readonly role: "second";
  readonly path: string;
  readonly parts: readonly string[];
  readonly link: Link;
}

/** Of the thread that has the lock and the backup, and leads. */
export interface StoreThreadData {
  readonly role: "first";
  readonly link: Link;
  readonly path: string;
  readonly parts: readonly string[];
  readonly nowMs: number;
  readonly isMarked: boolean;
  /** One word: 1 when the files are closed. */
  readonly end: SharedArrayBuffer;
}

export type StoreRequest =
  | {
      readonly kind: "commit";
      readonly changes: readonly Change[];
      readonly backup: boolean;
      readonly nowMs: number;
    }
  | { readonly kind: "compact" }
  | { readonly kind: "snapshot" }
  | { readonly kind: "close" };

type Records = ReadonlyMap<string, readonly (readonly [key: string, value: Uint8Array])[]>;

/**
 * `done` answers the requests one by one, in their order; the first one may be the opening's that failed. A `snapshot`
 * comes before the `done` of its request.
 */
export type StoreReply =
  | { readonly kind: "healed"; readonly file: string }
  | { readonly kind: "log"; readonly level: LogEventLevel; readonly text: string }
  | { readonly kind: "opened" | "snapshot"; readonly records: Records }
  | { readonly kind: "done"; readonly failure: StoreFailure | null };

/** An error on its way between threads, which would forget its class. */
export interface StoreFailure {
  readonly message: string;
  readonly kind: keyof typeof KINDS;
}

const KINDS = {
  undecided: UndecidedError,
  conflict: ConflictError,
  foreign: ForeignFileError,
  damage: DamageError,
  other: StoreError,
};

const SPECIAL_KINDS = ["undecided", "conflict", "foreign", "damage"] as const;

export function failureOf(error: unknown): StoreFailure {
  const kind = SPECIAL_KINDS.find((one) => error instanceof KINDS[one]) ?? "other";
  return { kind, message: messageOf(error) };
}

export function errorOf({ kind, message }: StoreFailure): StoreError {
  return new KINDS[kind](message);
}
