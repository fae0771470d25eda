/** What the manager of users needs of the fleet that its node is in; `src/fleet/` has it. */
import type { FleetAdmin } from "#core/fleet.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import type { Changes, Shared } from "./changes.ts";
import type { UserCounter } from "./counters.ts";
import type { FleetSettings } from "./fleet-settings.ts";
import type { ManagerEnv } from "./manager-env.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import type { StateRepository } from "./state-repository.ts";
import type { UserBook } from "./user-book.ts";
import type { UserRegistry } from "./user-registry.ts";
import type { UserRepository } from "./user-repository.ts";

export interface FleetContext {
  readonly env: ManagerEnv;
  readonly settings: UsersSettings;
  readonly fleet: FleetSettings;
  readonly opened: OpenedStore;
  /** Of the state file. */
  readonly local: StateRepository;
  readonly registry: UserRegistry;
}

/** Settles when the state file has this process's epoch. Rejects with `StoreError`, `ConfigError`. */
export type OpenFleet = (context: FleetContext) => Promise<FleetLink>;

export interface FleetLink {
  readonly repository: UserRepository;
  readonly admin: FleetAdmin;
  /**
   * The users of a listener that is about to be managed, as the fleet has them; without the database, as the state file
   * has them. Waits for the database two seconds after the start at most, then no more. Rejects with `ConfigError` where the
   * fleet has another listener of this name.
   */
  bookOf(listener: ManagedListener, known: UserBook | null): Promise<UserBook>;
  /** Begins to follow what other nodes change, and to report what is in force here. */
  follow(shared: Shared, changes: Changes): void;
  /** The state file is being told of these counters, which count as unchanged from then on. */
  note(counters: readonly UserCounter[]): void;
  /** The state file was opened anew and may lack what is in force: the next writes have all of it. */
  distrust(): void;
  /** Sends what is counted by now and takes no part any more. Never rejects; done within some seconds, mostly at once. */
  leave(): Promise<void>;
}
