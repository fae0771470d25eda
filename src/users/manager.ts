/**
 * The users of one state file. Every change goes the same way, within one turn of the event loop, so changes never
 * overlap: build the next book, check it, write it to the state file, hand it to the listener, make it the present one.
 */
import { randomUUID } from "node:crypto";
import { ApiError, ConfigError, messageOf } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Protocol } from "#core/protocol.ts";
import type {
  ManagedInboundView,
  ManagedProtocolView,
  SubscriptionView,
  UserAdmin,
  UserChange,
  UserDetailView,
  UserDraft,
  UserView,
} from "#core/users.ts";
import { Store } from "#store/backup.ts";
import type { Change } from "#store/kv.ts";
import { Allowance } from "./allowance.ts";
import { type Counted, NO_TRAFFIC, type Traffic } from "./counters.ts";
import { Keeper, type KeeperEnv } from "./keeper.ts";
import { NO_LIMITS } from "./limits.ts";
import { decodeState, encodeListener, encodeUser, LISTENERS, PARTS, USERS } from "./records.ts";
import { barOf, type Found, Roster, type RosterEnv, type Turned } from "./roster.ts";
import { seedBook } from "./seed.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import { newToken } from "./tokens.ts";
import * as books from "./user-book.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

export interface ManagerEnv extends RosterEnv, KeeperEnv {
  readonly protocols: readonly Protocol[];
  /** A listener could be neither changed nor put back: nobody must be let in any more. */
  readonly onFailure: (error: unknown) => void;
}

/** One user's change: what was, what will be, and counters that replace the user's. */
interface Step {
  readonly before: UserRecord | null;
  readonly after: UserRecord | null;
  readonly traffic?: Traffic;
}

export class Manager implements UserAdmin {
  readonly roster: Roster;
  readonly #env: ManagerEnv;
  readonly #keeper: Keeper;

  private constructor(env: ManagerEnv, settings: UsersSettings, store: Store) {
    this.#env = env;
    this.roster = new Roster(env, settings, decodeState(store.entries(LISTENERS), store.entries(USERS)));
    this.#keeper = new Keeper(store, this.roster, env);
  }

  /** Throws `StoreError`. Nothing is managed before `configure`. */
  static open(settings: UsersSettings, env: ManagerEnv): Manager {
    const store = Store.open({ path: settings.store, parts: PARTS, nowMs: env.nowMs, log: env.log });
    try {
      return new Manager(env, settings, store);
    } catch (error) {
      store[Symbol.dispose]();
      throw error;
    }
  }

  get secret(): string {
    return this.roster.settings.secret;
  }

  get store(): string {
    return this.roster.settings.store;
  }

  /**
   * Puts settings in force; `running` are the listeners that will serve them. Throws `ConfigError`, `StoreError`, with
   * nothing changed but the users of `running` ones that did not run before.
   */
  configure(settings: UsersSettings, running: readonly ManagedInbound[]): void {
    const nowMs = this.#env.nowMs();
    const { roster } = this;
    const changes: Change[] = [];
    const next = new Map<string, UserBook>();
    const barred = new Set<string>();
    const present = settings.listeners.map((listener) => this.#bookOf(listener, nowMs)); // before anybody hears of it
    for (const seeded of present) {
      const { listener } = seeded;
      for (const user of seeded.users.values())
        if (user.limits !== NO_LIMITS && barOf(this.#counted(listener, user), nowMs) !== null)
          barred.add(user.id);
      const inbound = running.find(({ name }) => name === listener);
      inbound?.replaceUsers(books.activeUsers(seeded, barred));
      const book = inbound === undefined ? seeded : { ...seeded, appliedRevision: seeded.revision };
      next.set(listener, book);
      changes.push({ part: LISTENERS, key: listener, value: encodeListener(book) });
      if (!roster.books.has(listener))
        for (const user of book.users.values())
          changes.push({ part: USERS, key: user.id, value: encodeUser(book, user, NO_TRAFFIC) });
    }
    this.#keeper.keepAll(changes);
    roster.settings = settings;
    roster.barred = barred;
    this.#take(settings, next);
  }

  /** As the file has it, or the first one. */
  #bookOf(listener: ManagedListener, nowMs: number): UserBook {
    const known = this.roster.books.get(listener.name);
    if (known !== undefined && known.protocol !== listener.protocol)
      throw new ConfigError(
        `svc: the state file has listener ${listener.name} as ${known.protocol}, the configuration as ${listener.protocol}`,
      );
    return known ?? seedBook(listener, nowMs);
  }

  /** Gives listeners the users that they have at present; none where they are not managed. Throws what a listener does. */
  putBack(inbounds: readonly ManagedInbound[]): void {
    const { listeners, books: all, barred } = this.roster;
    for (const inbound of inbounds) {
      const book = listeners.has(inbound.name) ? all.get(inbound.name) : undefined;
      inbound.replaceUsers(book === undefined ? [] : books.activeUsers(book, barred));
    }
  }

  #take(settings: UsersSettings, next: ReadonlyMap<string, UserBook>): void {
    const { roster } = this;
    for (const name of roster.listeners.keys())
      if (!next.has(name))
        for (const [id, traffic] of roster.counters.drop(name)) roster.resting.set(id, traffic);
    for (const [name, book] of next) {
      if (!roster.books.has(name))
        for (const { id, token } of book.users.values()) roster.tokens.add(book, id, token);
      roster.books.set(name, book);
      if (roster.listeners.has(name)) continue;
      for (const user of book.users.values())
        roster.counters.set(name, user.id, this.#counted(name, user), this.#env.nowMs());
    }
    roster.listeners = new Map(settings.listeners.map((listener) => [listener.name, listener]));
  }

  /** What is counted of a user, or rested while the listener was not managed. */
  #counted(listener: string, user: UserRecord): Counted {
    const { counters, resting } = this.roster;
    return counters.get(listener, user.id) ?? this.roster.countedOf(user, resting.get(user.id) ?? NO_TRAFFIC);
  }

  // --- what the API reads ---

  protocols(): readonly ManagedProtocolView[] {
    return this.#env.protocols.flatMap(({ type, users }) =>
      users === undefined ? [] : [{ type, label: users.label, credential: users.credential }],
    );
  }

  inbounds(): readonly ManagedInboundView[] {
    return this.roster.inboundViews();
  }

  users(inbound: string | null): readonly UserView[] {
    return this.roster.userViews(inbound);
  }

  user(id: string): UserDetailView | null {
    const found = this.roster.find(id);
    return found === null ? null : this.roster.detail(found);
  }

  limitKinds(): { readonly quota: boolean; readonly expiration: boolean } {
    return this.roster.limitKinds();
  }

  subscription(token: string): SubscriptionView | null {
    return this.roster.subscription(token);
  }

  // --- what it commands ---

  create(draft: UserDraft): UserDetailView {
    const listener = this.roster.listeners.get(draft.inbound);
    const book = this.roster.books.get(draft.inbound);
    if (listener === undefined || book === undefined)
      throw new ApiError(404, "inbound not found or not managed");
    books.checkRevision(book, draft.revision);
    const fresh = { id: randomUUID(), token: newToken(), createdAtMs: Math.trunc(this.#env.nowMs()) };
    const user = books.recordOf(draft, listener.support, fresh);
    return this.roster.detail(
      this.#change(book, listener, { before: null, after: user, traffic: NO_TRAFFIC }),
    );
  }

  update(id: string, change: UserChange): UserDetailView {
    const { book, user, listener } = this.#demand(id);
    books.checkRevision(book, change.revision);
    const after = books.changedRecord(user, change, listener.support, Math.trunc(this.#env.nowMs()));
    return this.roster.detail(this.#change(book, listener, { before: user, after }));
  }

  remove(id: string, revision: number): void {
    const { book, user, listener } = this.#demand(id);
    books.checkRevision(book, revision);
    this.#change(book, listener, { before: user, after: null });
  }

  resetTraffic(id: string, revision: number): UserDetailView {
    const { book, user, listener } = this.#demand(id);
    books.checkRevision(book, revision);
    const after = { ...user, trafficGeneration: user.trafficGeneration + 1 };
    return this.roster.detail(this.#change(book, listener, { before: user, after, traffic: NO_TRAFFIC }));
  }

  rotateSubscription(id: string, revision: number): { revision: number; subscriptionUrl: string } {
    const { book, user, listener } = this.#demand(id);
    books.checkRevision(book, revision);
    const found = this.#change(book, listener, { before: user, after: { ...user, token: newToken() } });
    return { revision: found.book.revision, subscriptionUrl: this.roster.subscriptionUrl(found) ?? "" };
  }

  // --- keeping ---

  /** Writes counters that have moved. Never throws. */
  checkpoint(): void {
    this.#keeper.checkpoint();
  }

  /** Writes everything and lets go of the file. Never throws. */
  close(): void {
    this.#keeper.close();
    this.roster.listeners = new Map(); // nobody is managed by this one any more
  }

  // --- the way of a change ---

  #change(book: UserBook, listener: ManagedListener, step: Step): Found {
    const { before, after } = step;
    const { roster } = this;
    const user = (after ?? before) as UserRecord;
    const counted = this.#countedAfter(book, user, step);
    const traffic = { ...counted, usage: counted.allowance?.store() ?? null };
    const isBarred = after !== null && barOf(counted, this.#env.nowMs()) !== null;
    const barred = isBarred === roster.barred.has(user.id) ? roster.barred : toggled(roster.barred, user.id);
    const checked = books.withUser(book, user.id, after, listener.support, this.#env.nowMs());
    const targets = this.#targets(book);
    const next = targets.length === 0 ? checked : { ...checked, appliedRevision: checked.revision };
    this.#keeper.keep(next, user.id, after, traffic);
    const knew = before?.enabled === true && !roster.barred.has(user.id) ? before : null;
    if (books.changesListener(knew, after?.enabled === true && !isBarred ? after : null)) {
      try {
        for (const target of targets) books.changeListener(target, next, barred, user.id);
      } catch (error) {
        this.#takeBack(book, targets, user.id, before);
        // Whatever it is to the listener, it is no mistake of the caller.
        throw new Error(`listener ${book.listener}: users not taken: ${messageOf(error)}`, { cause: error });
      }
    }
    roster.barred = barred;
    this.#publish(next, step, counted);
    return { book: next, user, listener };
  }

  /** What will have been counted for the user, and by which limits. */
  #countedAfter({ listener }: UserBook, user: UserRecord, { before, traffic }: Step): Counted {
    if (traffic !== undefined) return this.roster.countedOf(user, traffic);
    const counter = this.roster.counters.get(listener, user.id);
    if (counter === null || before?.limits === user.limits)
      return counter ?? { ...NO_TRAFFIC, allowance: null };
    const { uploadBytes, downloadBytes, usage, allowance } = counter;
    if (user.limits === NO_LIMITS) return { uploadBytes, downloadBytes, allowance: null };
    const nowMs = this.#env.monotonicMs();
    return { uploadBytes, downloadBytes, allowance: new Allowance(user.limits, nowMs, usage, allowance) };
  }

  #targets({ listener }: UserBook): readonly ManagedInbound[] {
    return [...this.#env.inbounds()].filter(({ name }) => name === listener);
  }

  /** A listener did not take its users: it gets the old ones, and the file the old user with what is counted now. */
  #takeBack(book: UserBook, targets: readonly ManagedInbound[], id: string, before: UserRecord | null): void {
    const { barred, counters } = this.roster;
    try {
      for (const target of targets) target.replaceUsers(books.activeUsers(book, barred));
      this.#keeper.keep(book, id, before, counters.get(book.listener, id) ?? NO_TRAFFIC);
    } catch (error) {
      this.#env.onFailure(error);
    }
  }

  #publish(book: UserBook, { before, after, traffic }: Step, counted: Counted): void {
    const { books: all, counters, presences, tokens } = this.roster;
    const nowMs = this.#env.nowMs();
    all.set(book.listener, book);
    if (before !== null && before.token !== after?.token) tokens.delete(before.token);
    if (after !== null && before?.token !== after.token) tokens.add(book, after.id, after.token);
    if (after === null) {
      if (before !== null) counters.delete(book.listener, before.id);
      return;
    }
    if (traffic !== undefined) counters.set(book.listener, after.id, counted, nowMs);
    if (before === null || before.limits === after.limits) return;
    counters.limit(book.listener, after.id, counted.allowance, nowMs);
    presences.get(book.listener, after.id)?.enforce(after.limits);
  }

  // --- limits as time goes by ---

  /** Bars users whose quota is used up or whose time is over, and lets those in who have room again. Never throws. */
  watchLimits(): void {
    for (const [listener, turned] of this.roster.turned()) {
      for (const { user, bar } of turned)
        this.#env.log.info(() => `user ${user.name} of ${listener}: ${bar ?? "active again"}`);
      if (!this.#turn(listener, turned)) return;
    }
  }

  /** False: nobody is let in any more, at no listener. */
  #turn(listener: string, turned: readonly Turned[]): boolean {
    const { roster } = this;
    const book = roster.books.get(listener) as UserBook;
    const barred = toggled(roster.barred, ...turned.map(({ user }) => user.id));
    // Written first: who was cut off must not come back with a crash.
    this.#keeper.save(
      turned.map(({ counter }) => counter).filter(({ isChanged }) => isChanged),
      { backup: false },
    );
    try {
      for (const target of this.#targets(book)) target.replaceUsers(books.activeUsers(book, barred));
      roster.barred = barred;
      return true;
    } catch (error) {
      this.#env.onFailure(error); // who has nothing left must not go on
      return false;
    }
  }

  #demand(id: string): Found {
    const found = this.roster.find(id);
    if (found === null) throw new ApiError(404, "user not found");
    return found;
  }
}

function toggled(ids: ReadonlySet<string>, ...some: readonly string[]): ReadonlySet<string> {
  return ids.symmetricDifference(new Set(some));
}
