/** What the API reads of the users: lists, one user with what is secret, subscriptions. */
import { ConfigError } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { LiveConnections } from "#core/live.ts";
import type { Endpoint } from "#core/session.ts";
import type { ClientForms } from "#core/share-link.ts";
import type {
  HistoryView,
  ManagedInboundView,
  OnlineIp,
  QuotaView,
  SubscriptionLink,
  SubscriptionView,
  UsageView,
  UserDetailView,
  UserView,
} from "#core/users.ts";
import { valueAt } from "#lib/at.ts";
import { NO_TRAFFIC, type UserCounter } from "./counters.ts";
import { NO_LIMITS } from "./limits.ts";
import { NO_REMARKS } from "./remarks.ts";
import { STEP_SECONDS } from "./recent-usage.ts";
import type { Clocks, Found, UserRegistry } from "./user-registry.ts";
import type { ManagedListener } from "./settings.ts";
import type { UserBook, UserRecord } from "./user-book.ts";
import {
  compareBytes,
  detailView,
  inboundView,
  linkLike,
  nodeLinkOf,
  overAllNodes,
  shareLinkOf,
  userView,
} from "./views.ts";

export interface UserViewsEnv extends Clocks {
  readonly live: LiveConnections;
  /** Every listener that was opened for managed users and may still carry sessions; the present ones last. */
  readonly inbounds: () => Iterable<ManagedInbound>;
  /** A share link in the forms that profiles of clients are made of. */
  readonly formsOf: (link: string) => ClientForms;
}

export class UserViews {
  readonly #env: UserViewsEnv;
  readonly #registry: UserRegistry;
  #noUser: { readonly protocol: string; readonly user: UserRecord } | null = null;

  constructor(env: UserViewsEnv, registry: UserRegistry) {
    this.#env = env;
    this.#registry = registry;
  }

  inboundViews(): readonly ManagedInboundView[] {
    return this.#managed().map(({ book, listener, applied }) => ({
      ...inboundView(book, listener),
      ...applied,
    }));
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
    const { user, listener } = found;
    const { book } = this.#shown(found.book);
    const view = this.#view(book, user, this.#activeConnections());
    return detailView(view, user, listener, this.subscriptionUrl(found), this.#online(book, user));
  }

  usage(id: string): UsageView | null {
    const found = this.#registry.find(id);
    if (found === null) return null;
    const counter = this.#registry.counters.get(found.book.listener, id);
    return { stepSeconds: STEP_SECONDS, steps: counter?.recent.shown(this.#env.nowMs()) ?? [] };
  }

  history(id: string, days: number): HistoryView | null {
    const nowMs = this.#env.nowMs();
    const found = this.#registry.find(id);
    if (found === null) {
      const removed = this.#registry.removed.find(id);
      if (removed === null) return null;
      const { listener: inbound, removedAtMs, history } = removed;
      return { inbound, removedAtMs, ...history.shown(nowMs, days) };
    }
    const inbound = found.book.listener;
    const counter = this.#registry.counters.get(inbound, id);
    const shown = counter?.history?.shown(nowMs, days) ?? { days: [], hours: [] };
    return { inbound, removedAtMs: null, ...shown };
  }

  limitKinds(): { readonly quota: boolean; readonly expiration: boolean } {
    const limits = [...this.#registry.counters.limited].flatMap(({ allowance }) => allowance?.limits ?? []);
    return {
      quota: limits.some(({ quota }) => quota !== null),
      expiration: limits.some(({ expiresAtMs }) => expiresAtMs !== null),
    };
  }

  subscriptionUrl(found: Found): string | null {
    if (this.#link(found) === null) return null;
    return `${this.#registry.settings.publicBaseUrl}/sub/svc/${found.user.token}`;
  }

  /**
   * A user past a limit keeps the subscription: there the client finds the reason. For a token without an entitled user the
   * same work is done for a decoy, so that the time of the answer reveals nothing.
   */
  subscription(token: string): SubscriptionView | null {
    const owner = this.#registry.tokens.find(token);
    const found = owner === null ? null : this.#registry.find(owner.userId);
    const entitled = found?.user.enabled === true ? found : null;
    const shown = entitled ?? this.#decoy();
    const link = shown === null ? null : this.#link(shown);
    const view =
      shown === null ? null : this.#subscriptionOf(shown, link ?? shown.listener.support.decoyLink);
    return entitled === null || link === null ? null : view;
  }

  #subscriptionOf(found: Found, link: string): SubscriptionView {
    const { book, user } = found;
    const [first = this.#formsOf(link), ...further] = this.#nodeLinks(found);
    const counter = this.#registry.counters.get(book.listener, user.id);
    const used = quotaOf(counter, this.#env.nowMs()) ?? counter ?? NO_TRAFFIC;
    return {
      url: `${this.#registry.settings.publicBaseUrl}/sub/svc/${user.token}`,
      ...first,
      ...(further.length === 0 ? {} : { further }),
      byAgent: this.#registry.settings.subscriptionByAgent,
      title: `${book.listener} - ${user.name}`,
      status: this.#registry.statusOf(found),
      uploadBytes: used.uploadBytes,
      downloadBytes: used.downloadBytes,
      totalBytes: user.limits.quota?.totalBytes ?? 0,
      expiresAtMs: user.limits.expiresAtMs,
    };
  }

  #formsOf(link: string): SubscriptionLink {
    return { link, ...this.#env.formsOf(link) };
  }

  /** One a node of the fleet; none: there is no fleet, or no node that is known to serve. */
  #nodeLinks({ book, user, listener }: Found): readonly SubscriptionLink[] {
    const { settings, serving } = this.#registry;
    if (settings.fleet === null) return [];
    const { address } = settings.fleet;
    const endpoints = this.#endpointsOf(book);
    return serving.flatMap(({ node, links }) => {
      const model = links[book.listener]?.[user.flow];
      if (model === undefined) return [];
      const own = nodeLinkOf(listener, address, endpoints, { ...user, name: `${user.name} · ${node}` });
      const link = own === null ? null : linkLike(model, own);
      return link === null ? [] : (this.#readable(link) ?? []);
    });
  }

  /** Null: what another node says of itself is no link that this program reads, or more than one line. */
  #readable(link: string): SubscriptionLink | null {
    if (/[\s\p{Cc}]/u.test(link)) return null;
    try {
      return this.#formsOf(link);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return null;
    }
  }

  #endpointsOf({ listener }: UserBook): readonly Endpoint[] {
    return [...this.#env.inbounds()].findLast(({ name }) => name === listener)?.endpoints ?? [];
  }

  /** A decoy: a user of the first listener that does not exist; null where nothing is managed. */
  #decoy(): Found | null {
    const [listener] = this.#registry.listeners.values();
    const book = listener === undefined ? undefined : this.#registry.books.get(listener.name);
    if (listener === undefined || book === undefined) return null;
    if (this.#noUser?.protocol !== listener.protocol) {
      const user = decoyUser(listener.support.makeCredential());
      this.#noUser = { protocol: listener.protocol, user };
    }
    return { book, user: this.#noUser.user, listener };
  }

  #managed(): readonly (Shown & { readonly listener: ManagedListener })[] {
    return [...this.#registry.listeners.values()]
      .map((listener) => ({ listener, ...this.#shown(valueAt(this.#registry.books, listener.name)) }))
      .sort((a, b) => compareBytes(a.book.listener, b.book.listener));
  }

  #shown(book: UserBook): Shown {
    const { settings, appliedElsewhere } = this.#registry;
    if (settings.fleet === null) return { book, applied: {} };
    const shown = overAllNodes(book, settings.fleet.node, appliedElsewhere);
    return { book: shown.book, applied: { applied: shown.applied } };
  }

  #view(book: UserBook, user: UserRecord, active: ReadonlyMap<string, number>): UserView {
    const counter = this.#registry.counters.get(book.listener, user.id);
    return userView(book, user, {
      traffic: counter ?? NO_TRAFFIC,
      quota: quotaOf(counter, this.#env.nowMs()),
      activeConnections: active.get(`${book.listener}\n${user.id}`) ?? 0,
      status: this.#registry.statusOf({ book, user }),
    });
  }

  #online({ listener }: UserBook, { id }: UserRecord): readonly OnlineIp[] {
    const [wallMs, nowMs] = [this.#env.nowMs(), this.#env.monotonicMs()];
    const origins = this.#registry.presences.get(listener, id)?.origins ?? [];
    return origins.map(({ ip, visits, seenAtMs }) => ({
      ip,
      connections: visits.size,
      lastSeenMs: Math.trunc(wallMs - (nowMs - seenAtMs)),
    }));
  }

  #link({ book, user, listener }: Found): string | null {
    return shareLinkOf(book, user, listener, this.#registry.settings, this.#endpointsOf(book));
  }

  #activeConnections(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { metadata } of this.#env.live) {
      const { name, userId } = metadata.inbound;
      if (userId === undefined || !this.#registry.listeners.has(name)) continue;
      const key = `${name}\n${userId}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [id, nodes] of this.#registry.onlineElsewhere) {
      const key = `${this.#registry.find(id)?.book.listener ?? ""}\n${id}`;
      counts.set(
        key,
        nodes.values().reduce((sum, one) => sum + one, counts.get(key) ?? 0),
      );
    }
    return counts;
  }
}

/** A book as the API shows it. */
interface Shown {
  readonly book: UserBook;
  readonly applied: Pick<ManagedInboundView, "applied">;
}

/** What was used; of a fleet's quota with periods, over all nodes. */
function quotaOf(counter: UserCounter | null, wallMs: number): QuotaView | null {
  const { allowance = null, share = null } = counter ?? {};
  if (counter === null || allowance === null) return null;
  const isPeriodic = allowance.limits.quota !== null && allowance.limits.quota.reset !== "never";
  return (isPeriodic ? share?.used() : null) ?? allowance.used(counter, wallMs);
}

function decoyUser(credential: string): UserRecord {
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
    remarks: NO_REMARKS,
  };
}
