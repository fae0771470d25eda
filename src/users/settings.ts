import type { UserSupport } from "#core/protocol.ts";
import type { FormerPaths } from "./former-paths.ts";
import type { FleetSettings } from "./fleet-settings.ts";

/** A listener whose users are managed, as the file has it. */
export interface ManagedListener {
  readonly name: string;
  /** Its type in files. */
  readonly protocol: string;
  readonly support: UserSupport;
  readonly options: object;
  /** As configured; 0: chosen by the system. */
  readonly ports: readonly number[];
}

/** The `svc` block with what it refers to. */
export interface UsersSettings {
  readonly secret: string;
  /** Without a slash at the end; "": no subscriptions. */
  readonly publicBaseUrl: string;
  /** A subscription without a format comes in the one that the client reads best. */
  readonly subscriptionByAgent: boolean;
  /** Absolute path. */
  readonly store: string;
  readonly listeners: readonly ManagedListener[];
  /** Addresses that another program gave out; null: there are none. */
  readonly former: FormerPaths | null;
  /** How long the history of a user who was removed is kept: as reports without a policy are. */
  readonly removedHistoryMs: number;
  /** Null: the state file is the only place of these users. */
  readonly fleet: FleetSettings | null;
}
