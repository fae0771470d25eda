/** All that is known of the users of one state file at the moment. How it is shown: user-views.ts. */
import type { Metadata } from "#core/session.ts";
import type { UserStatus } from "#core/users.ts";
import { SettledClock } from "#lib/settled-clock.ts";
import { type BootClock, SteadyTime } from "#lib/steady-time.ts";
import { valueAt } from "#lib/at.ts";
import { Allowance, isWindow } from "./allowance.ts";
import {
  type Counted,
  isOver,
  NO_TRAFFIC,
  type Traffic,
  type UserCounter,
  UserCounters,
} from "./counters.ts";
import { NO_LIMITS } from "./limits.ts";
import { Presences, type Origin } from "./presence.ts";
import type { StoredState } from "./records.ts";
import { RemovedHistories } from "./removed-histories.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import { TokenIndex } from "./tokens.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

export interface Clocks {
  /** Null: the system has none that counts its sleep. */
  readonly boot: BootClock | null;
  /** Unix time. */
  readonly nowMs: () => number;
  /** Never goes back. */
  readonly monotonicMs: () => number;
}

export interface Found {
  readonly book: UserBook;
  readonly user: UserRecord;
  readonly listener: ManagedListener;
}

/** Revisions by listener. */
export interface AppliedBy {
  readonly node: string;
  readonly applied: Readonly<Record<string, number>>;
}

/** A node of a fleet in subscriptions. */
export interface ServingNode {
  readonly node: string;
  /** By listener and flow: a share link as the node makes it, with any credential and name. */
  readonly links: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

type Bar = Extract<UserStatus, "expired" | "limited">;

/** A user whom time or traffic has moved across a limit. */
export interface Turned {
  readonly counter: UserCounter;
  readonly user: UserRecord;
  /** Null: back again. */
  readonly bar: Bar | null;
}

/** The first limit that the user is past, enabled or not; null: none. */
export function barOf(counted: Counted, wallMs: number): Bar | null {
  const { allowance } = counted;
  if (allowance === null) return null;
  const { expiresAtMs } = allowance.limits;
  if (expiresAtMs !== null && wallMs >= expiresAtMs) return "expired";
  return isOver(counted, wallMs) ? "limited" : null;
}

export class UserRegistry {
  readonly counters: UserCounters;
  /** Histories of users who are there no more. */
  readonly removed: RemovedHistories;
  /** By this, what is removed goes for its age. */
  readonly settled: SettledClock;
  readonly presences = new Presences();
  readonly tokens = new TokenIndex();
  /** Also of listeners that are not managed now: they may come back. */
  readonly books: Map<string, UserBook>;
  /** Counters of users whose listener is not managed now. */
  readonly resting: Map<string, Traffic>;
  listeners: ReadonlyMap<string, ManagedListener> = new Map();
  /** Ids of the users that are kept from the listeners because of their limits. */
  blocked: ReadonlySet<string> = new Set();
  settings: UsersSettings;
  /** What the other live nodes of the fleet have in force; none: there is no fleet. */
  appliedElsewhere: readonly AppliedBy[] = [];
  /** Nodes of a fleet that serve clients, in the order of subscriptions. */
  serving: readonly ServingNode[] = [];
  /** Connections by user and node, on the other nodes of the fleet. */
  onlineElsewhere: ReadonlyMap<string, ReadonlyMap<string, number>> = new Map();
  /** No new session is admitted: an operator takes this node of the fleet out of service. */
  isDraining = false;
  /** What windows are measured by. */
  readonly time: SteadyTime;
  readonly #env: Clocks;

  constructor(env: Clocks, settings: UsersSettings, state: StoredState) {
    this.#env = env;
    this.settings = settings;
    this.books = new Map(state.books);
    this.resting = new Map(state.traffic);
    this.time = timeOf(env, state);
    this.counters = new UserCounters(settings.fleet === null);
    this.removed = new RemovedHistories(state.histories.removed, state.histories.stray);
    this.settled = new SettledClock({ monotonicMs: env.monotonicMs, wallMs: env.nowMs });
    for (const book of this.books.values())
      for (const { id, token } of book.users.values()) this.tokens.add(book, id, token);
  }

  /** The users of a listener that is not managed, as a state file has them. */
  rest(book: UserBook, traffic: ReadonlyMap<string, Traffic>): void {
    for (const { id, token } of this.books.get(book.listener)?.users.values() ?? []) {
      this.tokens.delete(token);
      this.resting.delete(id);
    }
    for (const { id, token } of book.users.values()) {
      this.tokens.add(book, id, token);
      this.resting.set(id, traffic.get(id) ?? NO_TRAFFIC);
    }
    this.books.set(book.listener, book);
  }

  find(id: string): Found | null {
    for (const [name, listener] of this.listeners) {
      const book = valueAt(this.books, name);
      const user = book.users.get(id);
      if (user !== undefined) return { book, user, listener };
    }
    return null;
  }

  /** Null: no user who is managed now. */
  findAt(listenerName: string, id: string): Found | null {
    const listener = this.listeners.get(listenerName);
    const book = this.books.get(listenerName);
    const user = book?.users.get(id);
    if (listener === undefined || book === undefined || user === undefined) return null;
    return { book, user, listener };
  }

  originOf({ inbound: { name, userId = "" }, source }: Metadata): Origin | null {
    return this.presences.get(name, userId)?.origin(source.ip) ?? null;
  }

  /** Drops histories of users who were removed long enough ago. */
  expireHistories(): void {
    this.removed.expire(this.settled.nowSeconds() * 1000 - this.settings.removedHistoryMs);
  }

  /** What counting begins with, after a start or a reset. */
  countedOf({ limits }: UserRecord, { uploadBytes, downloadBytes, usage, history = null }: Traffic): Counted {
    const nowMs = this.#env.monotonicMs();
    return {
      history,
      uploadBytes,
      downloadBytes,
      allowance: limits === NO_LIMITS ? null : new Allowance(limits, nowMs, this.time, usage),
    };
  }

  statusOf({ book, user }: Pick<Found, "book" | "user">): UserStatus {
    if (!user.enabled) return "disabled";
    const counter = this.counters.get(book.listener, user.id);
    return (counter === null ? null : barOf(counter, this.#env.nowMs())) ?? "active";
  }

  /** Users that a listener has and should not have, or lacks and should have; by listener. */
  turned(): ReadonlyMap<string, readonly Turned[]> {
    const nowMs = this.#env.nowMs();
    const turned: Turned[] = [];
    this.time.look();
    for (const counter of this.counters.limited) {
      counter.look(nowMs);
      const bar = barOf(counter, nowMs);
      if ((bar !== null) === this.blocked.has(counter.id)) continue;
      const user = this.findAt(counter.listener, counter.id)?.user;
      if (user !== undefined) turned.push({ counter, user, bar });
    }
    return Map.groupBy(turned, ({ counter }) => counter.listener);
  }
}

/** Continues from the times in the users' windows. */
function timeOf({ monotonicMs, nowMs, boot }: Clocks, { traffic }: StoredState): SteadyTime {
  const time = new SteadyTime({ monotonicMs, wallMs: nowMs, boot });
  for (const { usage } of traffic.values()) {
    if (usage === null || !isWindow(usage)) continue;
    if (usage.moment !== undefined) time.goOnFrom(usage.moment);
    time.goOnBehind(usage.rows.at(-1)?.[0] ?? -Infinity);
  }
  return time;
}

/** Those of `some` change sides. */
export function toggled(ids: ReadonlySet<string>, some: readonly string[]): ReadonlySet<string> {
  return ids.symmetricDifference(new Set(some));
}
