/**
 * The users of one state file, as long as it is in use. Work on the users of one listener is done in the queue of this
 * listener: a change, counters that are written, users who turn from active to limited and back. A reload is exclusive.
 */
import { ConfigError, tooManyChanges } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { FleetAdmin } from "#core/fleet.ts";
import { KeyedQueue } from "#lib/keyed-queue.ts";
import type {
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
import type { Protocol } from "#core/protocol.ts";
import type { Change } from "#store/kv.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import type { Rollback } from "#core/rollback.ts";
import { rollbackOf } from "#store/high-mark.ts";
import { differing, reconcileWith } from "./agreement.ts";
import { Changes, type Shared } from "./changes.ts";
import { Checkpoints } from "./checkpoints.ts";
import { type Counted, NO_TRAFFIC, type Traffic, type UserCounter } from "./counters.ts";
import type { FleetLink, OpenFleet } from "./fleet-link.ts";
import { StateRepository } from "./state-repository.ts";
import type { UserRepository } from "./user-repository.ts";
import { LimitMonitor } from "./limit-watch.ts";
import { NO_LIMITS } from "./limits.ts";
import { encodeListener, encodeUser, LISTENERS, PARTS, stateIn, USERS } from "./records.ts";
import { barOf, UserRegistry } from "./user-registry.ts";
import { reportBars } from "./user-reports.ts";
import { seedBook } from "./seed.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import { UserViews } from "./user-views.ts";
import * as books from "./user-book.ts";
import { UNKNOWN_ID, type UserBook, type UserRecord } from "./user-book.ts";
import type { ManagerEnv } from "./manager-env.ts";

/** Those whose listeners' users can be managed. */
export function managedProtocols(protocols: readonly Protocol[]): readonly ManagedProtocolView[] {
  return protocols.flatMap(({ type, users }) => {
    if (users === undefined) return [];
    const { label, credential, network, isAdditional } = users;
    return [{ type, label, credential, network, isAdditional }];
  });
}

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
      else await reconcileWith(state, this.#shared, this.#changes);
    });
  }

  /**
   * Puts settings in force; `running` are the listeners that will serve them. Rejects with `ConfigError`, `StoreError`,
   * with nothing changed but the users of `running` ones that did not run before. No change may run meanwhile (`alone`).
   * Everything after the last write to the file happens in one turn of the event loop.
   */
  async configure(settings: UsersSettings, running: readonly ManagedInbound[]): Promise<void> {
    if (this.#fleet !== null) await this.#arrive(settings, this.#fleet);
    const nowMs = this.#env.nowMs();
    const { registry } = this;
    const changes: Change[] = [];
    const next = new Map<string, UserBook>();
    const blocked = new Set<string>();
    const present = settings.listeners.map((listener) => this.#bookOf(listener, nowMs)); // before it is published
    for (const seeded of present) {
      const { listener } = seeded;
      for (const user of seeded.users.values())
        if (user.limits !== NO_LIMITS && barOf(this.#counted(listener, user), nowMs) !== null)
          blocked.add(user.id);
      const inbound = running.find(({ name }) => name === listener);
      inbound?.replaceUsers(books.activeUsers(seeded, blocked));
      const book = inbound === undefined ? seeded : { ...seeded, appliedRevision: seeded.revision };
      next.set(listener, book);
      if (book.id === UNKNOWN_ID) continue;
      changes.push({ part: LISTENERS, key: listener, value: encodeListener(book) });
      if (!registry.books.has(listener))
        for (const user of book.users.values())
          changes.push({ part: USERS, key: user.id, value: encodeUser(book, user, NO_TRAFFIC) });
    }
    await this.#repository.keepAll(changes);
    const leaving = [...registry.counters.changed].filter(({ listener }) => !next.has(listener));
    void this.#repository.saveLast(leaving); // counted since keepAll, and no longer from here on
    registry.settings = settings;
    registry.blocked = blocked;
    this.#take(settings, next);
    reportBars(this.registry, next.values(), nowMs, this.#env.events);
  }

  /** Listeners that come to be managed get the users that the fleet has; so does the state file. */
  async #arrive(settings: UsersSettings, fleet: FleetLink): Promise<void> {
    const { registry } = this;
    for (const listener of settings.listeners.filter(({ name }) => !registry.listeners.has(name))) {
      const known = registry.books.get(listener.name) ?? null;
      const book = await fleet.bookOf(listener, known);
      if (book === known) continue;
      const before = known ?? { ...book, users: new Map<string, UserRecord>() };
      const traffic = new Map<string, Traffic>();
      for (const user of book.users.values())
        if (before.users.get(user.id)?.trafficGeneration === user.trafficGeneration)
          traffic.set(user.id, registry.resting.get(user.id) ?? NO_TRAFFIC);
      if (book.id !== UNKNOWN_ID)
        await this.#repository.keepAll([
          { part: LISTENERS, key: book.listener, value: encodeListener(book) },
          ...differing(before, book).map((id) => changeOf(book, id, traffic.get(id) ?? NO_TRAFFIC)),
        ]);
      registry.rest(book, traffic);
    }
  }

  /** As the file has it, or the first one. */
  #bookOf(listener: ManagedListener, nowMs: number): UserBook {
    const known = this.registry.books.get(listener.name);
    if (known !== undefined && known.protocol !== listener.protocol)
      throw new ConfigError(
        `svc: the state file has listener ${listener.name} as ${known.protocol}, the configuration as ${listener.protocol}`,
      );
    return known ?? seedBook(listener, nowMs);
  }

  /** Gives listeners the users that they have at present; none where they are not managed. Throws what a listener does. */
  putBack(inbounds: readonly ManagedInbound[]): void {
    const { listeners, books: all, blocked } = this.registry;
    for (const inbound of inbounds) {
      const book = listeners.has(inbound.name) ? all.get(inbound.name) : undefined;
      inbound.replaceUsers(book === undefined ? [] : books.activeUsers(book, blocked));
    }
  }

  #take(settings: UsersSettings, next: ReadonlyMap<string, UserBook>): void {
    const { registry } = this;
    for (const name of registry.listeners.keys())
      if (!next.has(name))
        for (const [id, traffic] of registry.counters.drop(name)) registry.resting.set(id, traffic);
    for (const [name, book] of next) {
      if (!registry.books.has(name))
        for (const { id, token } of book.users.values()) registry.tokens.add(book, id, token);
      registry.books.set(name, book);
      if (registry.listeners.has(name)) continue;
      for (const user of book.users.values())
        registry.counters.set(name, user.id, this.#counted(name, user), this.#env.nowMs());
    }
    registry.listeners = new Map(settings.listeners.map((listener) => [listener.name, listener]));
  }

  /** What is counted of a user, or rested while the listener was not managed. */
  #counted(listener: string, user: UserRecord): Counted {
    const { counters, resting } = this.registry;
    return (
      counters.get(listener, user.id) ?? this.registry.countedOf(user, resting.get(user.id) ?? NO_TRAFFIC)
    );
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

  limitKinds(): { readonly quota: boolean; readonly expiration: boolean } {
    return this.#views.limitKinds();
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

function changeOf(book: UserBook, id: string, traffic: Traffic): Change {
  const user = book.users.get(id);
  return { part: USERS, key: id, value: user === undefined ? null : encodeUser(book, user, traffic) };
}
