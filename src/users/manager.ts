/**
 * The users of one state file, as long as it is in use. Work on the users of one listener is done in the queue of this
 * listener: a change, counters that are written, users who turn from active to limited and back. A reload is exclusive.
 */
import { ApiError, tooManyChanges } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { FleetAdmin } from "#core/fleet.ts";
import { KeyedQueue } from "#lib/keyed-queue.ts";
import type {
  HistoryView,
  ManagedInboundView,
  ManagedProtocolView,
  SubscriptionView,
  UsageView,
  UserAdmin,
  UserChange,
  UserDetailView,
  UserDraft,
  UserView,
} from "#core/users.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import type { Rollback } from "#core/rollback.ts";
import { rollbackOf } from "#store/high-mark.ts";
import { reconcileWith } from "./agreement.ts";
import { Changes, type Shared } from "./changes.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { UserCounter } from "./counters.ts";
import type { FleetLink, OpenFleet } from "./fleet-link.ts";
import { StateRepository } from "./state-repository.ts";
import type { UserRepository } from "./user-repository.ts";
import { LimitMonitor } from "./limit-watch.ts";
import { ManagedListeners } from "./managed-listeners.ts";
import { PARTS, stateIn } from "./records.ts";
import { UserRegistry } from "./user-registry.ts";
import type { UsersSettings } from "./settings.ts";
import { UserViews } from "./user-views.ts";
import { managedProtocols } from "./views.ts";
import type { ManagerEnv } from "./manager-env.ts";

export class Manager implements UserAdmin {
  readonly registry: UserRegistry;
  readonly #env: ManagerEnv;
  readonly #repository: UserRepository;
  readonly #views: UserViews;
  readonly #queues = new KeyedQueue(tooManyChanges);
  readonly #shared: Shared;
  readonly #changes: Changes;
  readonly #checkpoints: Checkpoints;
  readonly #limits: LimitMonitor;
  readonly #listeners: ManagedListeners;
  #isOver = false;
  readonly #rollback: Rollback | null;

  /** Null: these users are in the state file alone. */
  readonly #fleet: FleetLink | null;

  private constructor(
    env: ManagerEnv,
    settings: UsersSettings,
    registry: UserRegistry,
    { repository, fleet }: { readonly repository: UserRepository; readonly fleet: FleetLink | null },
  ) {
    this.#env = env;
    this.#rollback = rollbackOf(settings.store);
    this.registry = registry;
    this.#repository = repository;
    this.#fleet = fleet;
    this.#views = new UserViews(env, this.registry);
    const parts = {
      registry: this.registry,
      repository: this.#repository,
      views: this.#views,
      queues: this.#queues,
    };
    const shared = { ...parts, env, isOver: () => this.#isOver };
    this.#shared = shared;
    this.#changes = new Changes(shared);
    this.#checkpoints = new Checkpoints(shared);
    this.#limits = new LimitMonitor(shared);
    this.#listeners = new ManagedListeners(shared, fleet);
    fleet?.follow(shared, this.#changes);
  }

  /** Rejects with `StoreError`. Nothing is managed before `configure`. */
  static async open(settings: UsersSettings, env: ManagerEnv, openFleet: OpenFleet): Promise<Manager> {
    const { nowMs, log } = env;
    let manager: Manager | null = null;
    const agree = async (records: OpenedStore["records"]) => {
      if (manager !== null) await manager.#agree(records);
    };
    const opened = await env.openStore({
      path: settings.store,
      parts: PARTS,
      isMarked: true,
      nowMs,
      log,
      events: env.events,
      agree,
    });
    try {
      const registry = new UserRegistry(env, settings, stateIn(opened.records));
      const onSaved = (counters: readonly UserCounter[]): void => fleet?.note(counters);
      const local = new StateRepository(opened.store, settings.store, registry, log, onSaved);
      const { fleet: wanted } = settings;
      const fleet: FleetLink | null =
        wanted === null ? null : await openFleet({ env, settings, fleet: wanted, opened, local, registry });
      const parts = { repository: fleet?.repository ?? local, fleet };
      return (manager = new Manager(env, settings, registry, parts));
    } catch (error) {
      await opened.store.close();
      throw error;
    }
  }

  get secret(): string {
    return this.registry.settings.secret;
  }

  get fleet(): FleetAdmin | null {
    return this.#fleet?.admin ?? null;
  }

  get store(): string {
    return this.registry.settings.store;
  }

  /** Do these settings mean the same part in the same fleet, or none? */
  isInFleetOf({ fleet, secret }: UsersSettings): boolean {
    const { settings } = this.registry;
    const isSame = JSON.stringify(fleet) === JSON.stringify(settings.fleet);
    return isSame && (fleet === null || secret === settings.secret); // tokens are sealed with a key from it
  }

  /** Runs `work` while no change is under way; changes that come meanwhile wait. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#queues.exclusive(work);
  }

  /** The file was opened anew; no commit is taken before this settles. */
  #agree(records: OpenedStore["records"]): Promise<void> {
    const state = stateIn(records);
    return this.#queues.exclusive(async () => {
      if (this.#isOver) return;
      if (this.#fleet !== null) this.#fleet.distrust();
      else {
        await reconcileWith(state, this.#shared, this.#changes);
        // It may be the backup, which lacks some minutes of counters, and an hour of a history that has ended in them.
        this.registry.counters.changedAgain([...this.registry.counters].filter(hasHistory));
      }
    });
  }

  /**
   * Puts settings in force; `running` are the listeners that will serve them. Rejects with `ConfigError`, `StoreError`,
   * with nothing changed but the users of `running` ones that did not run before. No change may run meanwhile (`alone`).
   */
  configure(settings: UsersSettings, running: readonly ManagedInbound[]): Promise<void> {
    return this.#listeners.putInForce(settings, running);
  }

  /** Gives listeners the users that they have at present; none where they are not managed. Throws what a listener does. */
  putBack(inbounds: readonly ManagedInbound[]): void {
    this.#listeners.putBack(inbounds);
  }

  // --- what the API reads ---

  get rollback(): Rollback | null {
    return this.#rollback;
  }

  protocols(): readonly ManagedProtocolView[] {
    return managedProtocols(this.#env.protocols);
  }

  inbounds(): readonly ManagedInboundView[] {
    return this.#views.inboundViews();
  }

  users(inbound: string | null): readonly UserView[] {
    return this.#views.userViews(inbound);
  }

  user(id: string): UserDetailView | null {
    const found = this.registry.find(id);
    return found === null ? null : this.#views.detail(found);
  }

  usage(id: string): UsageView | null {
    return this.#views.usage(id);
  }

  history(id: string, days: number): HistoryView | null {
    if (this.#fleet !== null)
      throw new ApiError(
        404,
        "a fleet keeps no history of its users by day (svc.fleet); /api/admin/users/ID/usage has the last day by hour",
      );
    return this.#views.history(id, days);
  }

  limitKinds(): { readonly quota: boolean; readonly expiration: boolean } {
    return this.#views.limitKinds();
  }

  formerSubscription(path: string): string | null {
    return this.registry.settings.former?.find(path) ?? null;
  }

  subscription(token: string): SubscriptionView | null {
    return this.#views.subscription(token);
  }

  // --- what it commands ---

  create(draft: UserDraft): Promise<UserDetailView> {
    return this.#changes.create(draft);
  }

  update(id: string, change: UserChange): Promise<UserDetailView> {
    return this.#changes.update(id, change);
  }

  remove(id: string, revision: number): Promise<void> {
    return this.#changes.remove(id, revision);
  }

  resetTraffic(id: string, revision: number): Promise<UserDetailView> {
    return this.#changes.resetTraffic(id, revision);
  }

  rotateSubscription(id: string, revision: number): Promise<{ revision: number; subscriptionUrl: string }> {
    return this.#changes.rotateSubscription(id, revision);
  }

  // --- as time goes by ---

  /** Writes counters that have moved. Never rejects. */
  checkpoint(): Promise<void> {
    return this.#checkpoints.run();
  }

  /** What was counted up to now is on the medium when it resolves. Rejects with `StoreError`. */
  async flush(): Promise<void> {
    await this.checkpoint(); // in batches, so that the event loop turns
    await this.#repository.keepAll([]);
  }

  /** Blocks users whose quota is used up or whose time is over, and unblocks those within their limits. Never rejects. */
  watchLimits(): Promise<void> {
    return this.#limits.look();
  }

  /** Brings the fleet what it lacks and takes no part any more; nothing may be counted after it. Never rejects. */
  async leaveFleet(): Promise<void> {
    await this.#fleet?.leave();
  }

  /** Writes everything and closes the file. Never rejects; from the call on it manages no users. */
  async close(): Promise<void> {
    const left = this.#fleet?.leave();
    const closed = this.#repository.close();
    this.#end();
    await closed;
    await left;
  }

  /** The same, done when it returns. */
  closeNow(): void {
    void this.#fleet?.leave();
    this.#repository.closeNow();
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.registry.listeners = new Map();
  }
}

function hasHistory({ history }: UserCounter): boolean {
  return history !== null && !history.isEmpty;
}
