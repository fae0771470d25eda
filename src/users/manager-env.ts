/** What the users' manager is given. */
import type { StoreEvents, UserEvents } from "#core/events.ts";
import type { Log } from "#core/log.ts";
import type { Protocol } from "#core/protocol.ts";
import type { OpenedStore, SupervisedOptions } from "#store/opened-store.ts";
import type { UserViewsEnv } from "./user-views.ts";

export interface ManagerEnv extends UserViewsEnv {
  readonly log: Log;
  readonly events: UserEvents & StoreEvents;
  readonly protocols: readonly Protocol[];
  readonly openStore: (options: SupervisedOptions) => Promise<OpenedStore>;
  /** A listener could be neither changed nor put back: no user may be admitted any more. */
  readonly onFailure: (error: unknown) => void;
}
