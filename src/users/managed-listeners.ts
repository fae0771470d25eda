/** Which listeners are managed with which users, as configurations come into force. */
import { ConfigError } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Change } from "#store/kv.ts";
import { differing } from "./agreement.ts";
import { isWindow } from "./allowance.ts";
import type { Shared } from "./changes.ts";
import { type Counted, NO_TRAFFIC, type Traffic } from "./counters.ts";
import type { FleetLink } from "./fleet-link.ts";
import { NO_LIMITS } from "./limits.ts";
import { encodeListener, encodeUser, LISTENERS, USERS } from "./records.ts";
import { seedBook } from "./seed.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import { activeUsers, UNKNOWN_ID, type UserBook, type UserRecord } from "./user-book.ts";
import { barOf, type UserRegistry } from "./user-registry.ts";
import { reportBars } from "./user-reports.ts";

export class ManagedListeners {
  readonly #shared: Shared;
  readonly #registry: UserRegistry;
  readonly #fleet: FleetLink | null;

  constructor(shared: Shared, fleet: FleetLink | null) {
    this.#shared = shared;
    this.#registry = shared.registry;
    this.#fleet = fleet;
  }

  /** `Manager.configure`. Everything after the last write to the file happens in one turn of the event loop. */
  async putInForce(settings: UsersSettings, running: readonly ManagedInbound[]): Promise<void> {
    if (this.#fleet !== null) await this.#arrive(settings, this.#fleet);
    const { env, repository } = this.#shared;
    const nowMs = env.nowMs();
    const registry = this.#registry;
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
      inbound?.replaceUsers(activeUsers(seeded, blocked));
      const book = inbound === undefined ? seeded : { ...seeded, appliedRevision: seeded.revision };
      next.set(listener, book);
      if (book.id === UNKNOWN_ID) continue;
      changes.push({ part: LISTENERS, key: listener, value: encodeListener(book) });
      if (!registry.books.has(listener))
        for (const user of book.users.values())
          changes.push({ part: USERS, key: user.id, value: encodeUser(book, user, NO_TRAFFIC) });
    }
    await repository.keepAll(changes);
    const leaving = [...registry.counters.changed].filter(({ listener }) => !next.has(listener));
    void repository.saveLast(leaving); // counted since keepAll, and no longer from here on
    registry.settings = settings;
    const fault = settings.former?.fault ?? null;
    if (fault !== null) env.log.error(`svc.former-subscriptions: the file is not used: ${fault}`);
    registry.blocked = blocked;
    this.#take(settings, next);
    reportBars(registry, next.values(), nowMs, env.events);
  }

  /** Listeners that come to be managed get the users that the fleet has; so does the state file. */
  async #arrive(settings: UsersSettings, fleet: FleetLink): Promise<void> {
    const registry = this.#registry;
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
        await this.#shared.repository.keepAll([
          { part: LISTENERS, key: book.listener, value: encodeListener(book) },
          ...differing(before, book).map((id) => changeOf(book, id, traffic.get(id) ?? NO_TRAFFIC)),
        ]);
      registry.rest(book, traffic);
    }
  }

  /** As the file has it, or the first one. */
  #bookOf(listener: ManagedListener, nowMs: number): UserBook {
    const known = this.#registry.books.get(listener.name);
    if (known !== undefined && known.protocol !== listener.protocol)
      throw new ConfigError(
        `svc: the state file has listener ${listener.name} as ${known.protocol}, the configuration as ${listener.protocol}`,
      );
    return known ?? seedBook(listener, nowMs);
  }

  #take(settings: UsersSettings, next: ReadonlyMap<string, UserBook>): void {
    const registry = this.#registry;
    for (const name of registry.listeners.keys())
      if (!next.has(name))
        for (const [id, traffic] of registry.counters.drop(name)) registry.resting.set(id, traffic);
    for (const [name, book] of next) {
      if (!registry.books.has(name))
        for (const { id, token } of book.users.values()) registry.tokens.add(book, id, token);
      registry.books.set(name, book);
      if (registry.listeners.has(name)) continue;
      for (const user of book.users.values())
        registry.counters.set(name, user.id, this.#counted(name, user), this.#shared.env.nowMs());
    }
    registry.listeners = new Map(settings.listeners.map((listener) => [listener.name, listener]));
    if (registry.time.isOfLaterRun) this.#storeMoment();
  }

  /** By one of the windows: each is written with the present moment. */
  #storeMoment(): void {
    const { counters } = this.#registry;
    const measured = counters.limited.values().find(({ usage }) => usage !== null && isWindow(usage));
    if (measured !== undefined) counters.changedAgain([measured]);
  }

  /** What is counted of a user, or rested while the listener was not managed. */
  #counted(listener: string, user: UserRecord): Counted {
    const { counters, resting } = this.#registry;
    return (
      counters.get(listener, user.id) ?? this.#registry.countedOf(user, resting.get(user.id) ?? NO_TRAFFIC)
    );
  }

  /** Gives listeners the users that they have at present; none where they are not managed. Throws what a listener does. */
  putBack(inbounds: readonly ManagedInbound[]): void {
    const { listeners, books, blocked } = this.#registry;
    for (const inbound of inbounds) {
      const book = listeners.has(inbound.name) ? books.get(inbound.name) : undefined;
      inbound.replaceUsers(book === undefined ? [] : activeUsers(book, blocked));
    }
  }
}

function changeOf(book: UserBook, id: string, traffic: Traffic): Change {
  const user = book.users.get(id);
  return { part: USERS, key: id, value: user === undefined ? null : encodeUser(book, user, traffic) };
}
