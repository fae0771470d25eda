/** All that is known of the users of one state file at the moment, and how it is shown. */
import type { ManagedInbound } from "#core/inbound.ts";
import type { LiveConnection } from "#core/live.ts";
import type { Metadata } from "#core/session.ts";
import type {
  ManagedInboundView,
  OnlineIp,
  SubscriptionView,
  UsageView,
  UserDetailView,
  UserStanding,
  UserView,
} from "#core/users.ts";
import { Allowance } from "./allowance.ts";
import { type Counted, NO_TRAFFIC, type Traffic, type UserCounter, UserCounters } from "./counters.ts";
import { NO_LIMITS } from "./limits.ts";
import { Presences, type Origin } from "./presence.ts";
import { STEP_SECONDS } from "./recent-usage.ts";
import type { StoredState } from "./records.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import { TokenIndex } from "./tokens.ts";
import type { UserBook, UserRecord } from "./user-book.ts";
import { compareBytes, detailView, inboundView, shareLinkOf, userView } from "./views.ts";

export interface RosterEnv {
  /** Unix time. */
  readonly nowMs: () => number;
  /** Never goes back. */
  readonly monotonicMs: () => number;
  readonly live: Iterable<LiveConnection>;
  /** Every listener that was opened for managed users and may still carry sessions; the present ones last. */
  readonly inbounds: () => Iterable<ManagedInbound>;
  /** A share link as a node of a configuration; null where it stands for none. */
  readonly nodeOf: (link: string) => Readonly<Record<string, unknown>> | null;
}

export interface Found {
  readonly book: UserBook;
  readonly user: UserRecord;
  readonly listener: ManagedListener;
}

type Bar = Extract<UserStanding, "expired" | "limited">;

/** A user whom time or traffic has moved across a limit. */
export interface Turned {
  readonly counter: UserCounter;
  readonly user: UserRecord;
  /** Null: back again. */
  readonly bar: Bar | null;
}

/** Past what can bar a user from a listener, enabled or not? The first that holds; null: neither. */
export function barOf(counted: Counted, wallMs: number): Bar | null {
  const { allowance } = counted;
  if (allowance === null) return null;
  const { expiresAtMs } = allowance.limits;
  if (expiresAtMs !== null && wallMs >= expiresAtMs) return "expired";
  return allowance.isOver(counted, wallMs) ? "limited" : null;
}

export class Roster {
  readonly counters = new UserCounters();
  readonly presences = new Presences();
  readonly tokens = new TokenIndex();
  /** Also of listeners that are not managed now: they may come back. */
  readonly books: Map<string, UserBook>;
  /** Counters of users whose listener is not managed now. */
  readonly resting: Map<string, Traffic>;
  listeners: ReadonlyMap<string, ManagedListener> = new Map();
  /** Ids of the users whom the listeners do not know for their limits' sake. */
  barred: ReadonlySet<string> = new Set();
  settings: UsersSettings;
  readonly #env: RosterEnv;
  #noUser: { readonly protocol: string; readonly user: UserRecord } | null = null;

  constructor(env: RosterEnv, settings: UsersSettings, state: StoredState) {
    this.#env = env;
    this.settings = settings;
    this.books = new Map(state.books);
    this.resting = new Map(state.traffic);
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
      const book = this.books.get(name) as UserBook;
      const user = book.users.get(id);
      if (user !== undefined) return { book, user, listener };
    }
    return null;
  }

  /** Null: nobody who is managed now. */
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

  /** What counting begins with, after a start or a reset. */
  countedOf({ limits }: UserRecord, { uploadBytes, downloadBytes, usage }: Traffic): Counted {
    const nowMs = this.#env.monotonicMs();
    return {
      uploadBytes,
      downloadBytes,
      allowance: limits === NO_LIMITS ? null : new Allowance(limits, nowMs, usage),
    };
  }

  // --- what the API reads ---

  inboundViews(): readonly ManagedInboundView[] {
    return this.#managed().map(({ book, listener }) => inboundView(book, listener));
  }

  userViews(inbound: string | null): readonly UserView[] {
    const active = this.#activeConnections();
    return this.#managed()
      .filter(({ book }) => inbound === null || book.listener === inbound)
      .flatMap(({ book }) =>
        [...book.users.values()]
          .sort((a, b) => compareBytes(a.name, b.name) || compareBytes(a.id, b.id))
          .map((user) => this.#view(book, user, active)),
      );
  }

  detail(found: Found): UserDetailView {
    const { book, user, listener } = found;
    const view = this.#view(book, user, this.#activeConnections());
    return detailView(view, user, listener, this.subscriptionUrl(found), this.#online(book, user));
  }

  usage(id: string): UsageView | null {
    const found = this.find(id);
    if (found === null) return null;
    const counter = this.counters.get(found.book.listener, id);
    return { stepSeconds: STEP_SECONDS, steps: counter?.recent.shown(this.#env.nowMs()) ?? [] };
  }

  limitKinds(): { readonly quota: boolean; readonly expiration: boolean } {
    const limits = [...this.counters.limited].flatMap(({ allowance }) => allowance?.limits ?? []);
    return {
      quota: limits.some(({ quota }) => quota !== null),
      expiration: limits.some(({ expiresAtMs }) => expiresAtMs !== null),
    };
  }

  standingOf({ book, user }: Pick<Found, "book" | "user">): UserStanding {
    if (!user.enabled) return "disabled";
    const counter = this.counters.get(book.listener, user.id);
    return (counter === null ? null : barOf(counter, this.#env.nowMs())) ?? "active";
  }

  /** Whom the listeners know and should not, or the other way round; by listener. */
  turned(): ReadonlyMap<string, readonly Turned[]> {
    const nowMs = this.#env.nowMs();
    const turned: Turned[] = [];
    for (const counter of this.counters.limited) {
      counter.look(nowMs);
      const bar = barOf(counter, nowMs);
      if ((bar !== null) === this.barred.has(counter.id)) continue;
      const user = this.findAt(counter.listener, counter.id)?.user;
      if (user !== undefined) turned.push({ counter, user, bar });
    }
    return Map.groupBy(turned, ({ counter }) => counter.listener);
  }

  subscriptionUrl(found: Found): string | null {
    if (this.#link(found) === null) return null;
    return `${this.settings.publicBaseUrl}/sub/svc/${found.user.token}`;
  }

  /**
   * Whoever is past a limit keeps the subscription: there a client reads why nothing works. For a token of nobody who may
   * have one the same is done for nobody, so that the time that it takes tells nothing either.
   */
  subscription(token: string): SubscriptionView | null {
    const owner = this.tokens.find(token);
    const found = owner === null ? null : this.find(owner.userId);
    const entitled = found?.user.enabled === true ? found : null;
    const shown = entitled ?? this.#nobody();
    const link = shown === null ? null : this.#link(shown);
    const view = shown === null ? null : this.#subscriptionOf(shown, link ?? LINK_OF_NOBODY);
    return entitled === null || link === null ? null : view;
  }

  #subscriptionOf(found: Found, link: string): SubscriptionView {
    const { book, user } = found;
    const counter = this.counters.get(book.listener, user.id);
    const used = counter?.allowance?.used(counter, this.#env.nowMs()) ?? counter ?? NO_TRAFFIC;
    return {
      url: `${this.settings.publicBaseUrl}/sub/svc/${user.token}`,
      link,
      node: this.#env.nodeOf(link),
      title: `${book.listener} - ${user.name}`,
      standing: this.standingOf(found),
      uploadBytes: used.uploadBytes,
      downloadBytes: used.downloadBytes,
      totalBytes: user.limits.quota?.totalBytes ?? 0,
      expiresAtMs: user.limits.expiresAtMs,
    };
  }

  /** A user of the first listener whom nobody knows; null where nothing is managed. */
  #nobody(): Found | null {
    const [listener] = this.listeners.values();
    const book = listener === undefined ? undefined : this.books.get(listener.name);
    if (listener === undefined || book === undefined) return null;
    if (this.#noUser?.protocol !== listener.protocol) {
      const user = userOfNobody(listener.support.makeCredential());
      this.#noUser = { protocol: listener.protocol, user };
    }
    return { book, user: this.#noUser.user, listener };
  }

  #managed(): readonly { readonly book: UserBook; readonly listener: ManagedListener }[] {
    return [...this.listeners.values()]
      .map((listener) => ({ listener, book: this.books.get(listener.name) as UserBook }))
      .sort((a, b) => compareBytes(a.book.listener, b.book.listener));
  }

  #view(book: UserBook, user: UserRecord, active: ReadonlyMap<string, number>): UserView {
    const counter = this.counters.get(book.listener, user.id);
    return userView(book, user, {
      traffic: counter ?? NO_TRAFFIC,
      quota: counter?.allowance?.used(counter, this.#env.nowMs()) ?? null,
      activeConnections: active.get(`${book.listener}\n${user.id}`) ?? 0,
      standing: this.standingOf({ book, user }),
    });
  }

  #online({ listener }: UserBook, { id }: UserRecord): readonly OnlineIp[] {
    const [wallMs, nowMs] = [this.#env.nowMs(), this.#env.monotonicMs()];
    const origins = this.presences.get(listener, id)?.origins ?? [];
    return origins.map(({ ip, visits, seenAtMs }) => ({
      ip,
      connections: visits.size,
      lastSeenMs: Math.trunc(wallMs - (nowMs - seenAtMs)),
    }));
  }

  #link({ book, user, listener }: Found): string | null {
    const present = [...this.#env.inbounds()].findLast(({ name }) => name === book.listener);
    return shareLinkOf(book, user, listener, this.settings, present?.endpoints ?? []);
  }

  #activeConnections(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { metadata } of this.#env.live) {
      const { name, userId } = metadata.inbound;
      if (userId === undefined || !this.listeners.has(name)) continue;
      const key = `${name}\n${userId}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  }
}

/** Stands where somebody's would, which there is not. */
const LINK_OF_NOBODY =
  "vless://00000000-0000-4000-8000-000000000000@192.0.2.1:443?encryption=none&type=tcp#nobody";

function userOfNobody(credential: string): UserRecord {
  return {
    id: "",
    name: "nobody",
    credential,
    flow: "",
    enabled: true,
    trafficGeneration: 1,
    createdAtMs: 0,
    updatedAtMs: 0,
    token: "",
    limits: NO_LIMITS,
  };
}

/** Those of `some` change sides. */
export function toggled(ids: ReadonlySet<string>, some: readonly string[]): ReadonlySet<string> {
  return ids.symmetricDifference(new Set(some));
}
