/**
 * The users of one state file. Every change goes the same way, within one turn of the event loop, so changes never
 * overlap: build the next book, check it, write it to the state file, hand it to the listener, make it the present one.
 */
import { randomUUID } from "node:crypto";
import { ApiError, ConfigError, messageOf } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { LiveConnection } from "#core/live.ts";
import type { Log } from "#core/log.ts";
import type { Protocol } from "#core/protocol.ts";
import type {
  ManagedProtocolView,
  UserAdmin,
  UserChange,
  UserDetailView,
  UserDraft,
  UserView,
} from "#core/users.ts";
import type { ManagedInboundView } from "#core/users.ts";
import { Store } from "#store/backup.ts";
import { type Change, ConflictError } from "#store/kv.ts";
import { UserCounters, type Traffic } from "./counters.ts";
import { decodeState, encodeListener, encodeUser, LISTENERS, PARTS, USERS } from "./records.ts";
import { seedBook } from "./seed.ts";
import type { ManagedListener, UsersSettings } from "./settings.ts";
import { newToken, TokenIndex } from "./tokens.ts";
import * as books from "./user-book.ts";
import type { UserBook, UserRecord } from "./user-book.ts";
import { compareBytes, detailView, inboundView, shareLinkOf, userView } from "./views.ts";

export interface ManagerEnv {
  readonly log: Log;
  readonly nowMs: () => number;
  readonly live: Iterable<LiveConnection>;
  readonly protocols: readonly Protocol[];
  /** Every listener that was opened for managed users and may still carry sessions; the present ones last. */
  readonly inbounds: () => Iterable<ManagedInbound>;
  /** A listener could be neither changed nor put back: nobody must be let in any more. */
  readonly onFailure: (error: unknown) => void;
}

const NO_TRAFFIC: Traffic = { uploadBytes: 0, downloadBytes: 0 };
/** Users written in one go by a checkpoint, so that the event loop is not held up: some 15 ms. */
const BATCH = 200;
/** How long the backup may lack counters; it never lacks a change. */
const BACKUP_MS = 5 * 60_000;

interface Found {
  readonly book: UserBook;
  readonly user: UserRecord;
  readonly listener: ManagedListener;
}

export class Manager implements UserAdmin {
  readonly counters = new UserCounters();
  readonly #env: ManagerEnv;
  readonly #store: Store;
  /** Also of listeners that are not managed now: they may come back. */
  readonly #books: Map<string, UserBook>;
  /** Counters of users whose listener is not managed now. */
  readonly #resting: Map<string, Traffic>;
  readonly #tokens = new TokenIndex();
  #settings: UsersSettings;
  #listeners = new Map<string, ManagedListener>();
  #backedUpAtMs: number;

  private constructor(env: ManagerEnv, settings: UsersSettings, store: Store) {
    const state = decodeState(store.entries(LISTENERS), store.entries(USERS));
    this.#env = env;
    this.#settings = settings;
    this.#store = store;
    this.#books = new Map(state.books);
    this.#resting = new Map(state.traffic);
    this.#backedUpAtMs = env.nowMs();
    for (const book of this.#books.values())
      for (const { id, token } of book.users.values()) this.#tokens.add(book, id, token);
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
    return this.#settings.secret;
  }

  get store(): string {
    return this.#settings.store;
  }

  /**
   * Puts settings in force; `running` are the listeners that will serve them. Throws `ConfigError`, `StoreError`, with
   * nothing changed but the users of `running` ones that did not run before.
   */
  configure(settings: UsersSettings, running: readonly ManagedInbound[]): void {
    const nowMs = this.#env.nowMs();
    const changes: Change[] = [];
    const next = new Map<string, UserBook>();
    for (const listener of settings.listeners) {
      const known = this.#books.get(listener.name);
      if (known !== undefined && known.protocol !== listener.protocol)
        throw new ConfigError(
          `svc: the state file has listener ${listener.name} as ${known.protocol}, the configuration as ${listener.protocol}`,
        );
      const seeded = known ?? seedBook(listener, nowMs);
      const inbound = running.find(({ name }) => name === listener.name);
      inbound?.replaceUsers(books.activeUsers(seeded));
      const book = inbound === undefined ? seeded : { ...seeded, appliedRevision: seeded.revision };
      next.set(listener.name, book);
      changes.push({ part: LISTENERS, key: listener.name, value: encodeListener(book) });
      if (known === undefined)
        for (const user of book.users.values())
          changes.push({ part: USERS, key: user.id, value: encodeUser(book, user, NO_TRAFFIC) });
    }
    this.#store.commit([...changes, ...this.#unsaved(this.counters.changed)], { backup: true });
    this.counters.saved([...this.counters.changed]);
    this.#settings = settings;
    this.#take(settings, next);
  }

  #take(settings: UsersSettings, next: ReadonlyMap<string, UserBook>): void {
    for (const name of this.#listeners.keys())
      if (!next.has(name))
        for (const [id, traffic] of this.counters.drop(name)) this.#resting.set(id, traffic);
    for (const [name, book] of next) {
      if (!this.#books.has(name))
        for (const { id, token } of book.users.values()) this.#tokens.add(book, id, token);
      this.#books.set(name, book);
      if (this.#listeners.has(name)) continue;
      for (const id of book.users.keys()) this.counters.set(name, id, this.#resting.get(id) ?? NO_TRAFFIC);
    }
    this.#listeners = new Map(settings.listeners.map((listener) => [listener.name, listener]));
  }

  // --- what the API reads ---

  protocols(): readonly ManagedProtocolView[] {
    return this.#env.protocols.flatMap(({ type, users }) =>
      users === undefined ? [] : [{ type, label: users.label, credential: users.credential }],
    );
  }

  inbounds(): readonly ManagedInboundView[] {
    return this.#managed().map(({ book, listener }) => inboundView(book, listener));
  }

  users(inbound: string | null): readonly UserView[] {
    const active = this.#activeConnections();
    return this.#managed()
      .filter(({ book }) => inbound === null || book.listener === inbound)
      .flatMap(({ book }) =>
        [...book.users.values()]
          .sort((a, b) => compareBytes(a.name, b.name) || compareBytes(a.id, b.id))
          .map((user) => userView(book, user, this.#traffic(book, user), active.get(keyOf(book, user)) ?? 0)),
      );
  }

  user(id: string): UserDetailView | null {
    const found = this.#find(id);
    return found === null ? null : this.#detail(found);
  }

  shareLink(token: string): string | null {
    const owner = this.#tokens.find(token);
    const found = owner === null ? null : this.#find(owner.userId);
    return found === null ? null : this.#link(found);
  }

  // --- what it commands ---

  create(draft: UserDraft): UserDetailView {
    const listener = this.#listeners.get(draft.inbound);
    const book = this.#books.get(draft.inbound);
    if (listener === undefined || book === undefined) throw unknownListener();
    books.checkRevision(book, draft.revision);
    const fresh = { id: randomUUID(), token: newToken(), createdAtMs: Math.trunc(this.#env.nowMs()) };
    const user = books.recordOf(draft, listener.support, fresh);
    return this.#detail(this.#change(book, listener, { before: null, after: user, traffic: NO_TRAFFIC }));
  }

  update(id: string, change: UserChange): UserDetailView {
    const { book, user, listener } = this.#demand(id);
    books.checkRevision(book, change.revision);
    const after = books.changedRecord(user, change, listener.support, Math.trunc(this.#env.nowMs()));
    return this.#detail(this.#change(book, listener, { before: user, after }));
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
    return this.#detail(this.#change(book, listener, { before: user, after, traffic: NO_TRAFFIC }));
  }

  rotateSubscription(id: string, revision: number): { revision: number; subscriptionUrl: string } {
    const { book, user, listener } = this.#demand(id);
    books.checkRevision(book, revision);
    const found = this.#change(book, listener, { before: user, after: { ...user, token: newToken() } });
    return { revision: found.book.revision, subscriptionUrl: this.#subscriptionUrl(found) ?? "" };
  }

  // --- keeping ---

  /** Writes counters that have moved. Batches follow each other in turns of their own. Never throws. */
  checkpoint(): void {
    const batch = [...this.counters.changed].slice(0, BATCH);
    if (batch.length === 0) return;
    const nowMs = this.#env.nowMs();
    const backup = nowMs - this.#backedUpAtMs >= BACKUP_MS;
    try {
      this.#store.commit(this.#unsaved(batch), { backup });
      this.counters.saved(batch);
    } catch (error) {
      this.#env.log.warning(`traffic of users is not saved, it is tried again: ${messageOf(error)}`);
      return;
    }
    if (backup) this.#backedUpAtMs = nowMs;
    if (this.counters.changed.size > 0 && batch.length === BATCH) setImmediate(() => this.checkpoint());
  }

  /** Writes everything and lets go of the file. Never throws. */
  close(): void {
    try {
      this.#store.commit(this.#unsaved(this.counters.changed), { backup: true });
      this.counters.saved([...this.counters.changed]);
    } catch (error) {
      this.#env.log.error(`the last traffic of users is lost: ${messageOf(error)}`);
    }
    try {
      this.#store[Symbol.dispose]();
    } catch (error) {
      this.#env.log.error(`closing ${this.store}: ${messageOf(error)}`);
    }
    this.#listeners.clear(); // a checkpoint that was put off finds nothing to do
    this.counters.saved([...this.counters.changed]);
  }

  #unsaved(
    counters: Iterable<{ readonly listener: string; readonly id: string } & Traffic>,
  ): readonly Change[] {
    return Array.from(counters).flatMap((counter) => {
      const book = this.#books.get(counter.listener);
      const user = book?.users.get(counter.id);
      if (book === undefined || user === undefined) return [];
      return [{ part: USERS, key: user.id, value: encodeUser(book, user, counter) }];
    });
  }

  // --- the way of a change ---

  /** `traffic` replaces the user's counters. */
  #change(
    book: UserBook,
    listener: ManagedListener,
    change: {
      readonly before: UserRecord | null;
      readonly after: UserRecord | null;
      readonly traffic?: Traffic;
    },
  ): Found {
    const { before, after, traffic } = change;
    const user = (after ?? before) as UserRecord;
    const counted = traffic ?? this.#traffic(book, user);
    const checked = books.withUser(book, user.id, after, listener.support, this.#env.nowMs());
    const targets = [...this.#env.inbounds()].filter(({ name }) => name === book.listener);
    const next = targets.length === 0 ? checked : { ...checked, appliedRevision: checked.revision };
    this.#persist(next, user.id, after, counted);
    if (books.changesListener(before, after)) {
      try {
        for (const target of targets) target.replaceUsers(books.activeUsers(next));
      } catch (error) {
        this.#takeBack(book, targets, user.id, before, counted);
        throw error;
      }
    }
    this.#publish(next, before, after, traffic);
    return { book: next, user, listener };
  }

  #persist(book: UserBook, id: string, user: UserRecord | null, traffic: Traffic): void {
    try {
      this.#store.commit(
        [
          { part: LISTENERS, key: book.listener, value: encodeListener(book) },
          { part: USERS, key: id, value: user === null ? null : encodeUser(book, user, traffic) },
        ],
        { backup: true },
      );
    } catch (error) {
      if (error instanceof ConflictError)
        throw new ApiError(409, "the state file was changed by somebody else", { cause: error });
      throw error;
    }
  }

  /** A listener did not take its users: it gets the old ones, and so does the file. */
  #takeBack(
    book: UserBook,
    targets: readonly ManagedInbound[],
    id: string,
    before: UserRecord | null,
    traffic: Traffic,
  ): void {
    try {
      for (const target of targets) target.replaceUsers(books.activeUsers(book));
      this.#persist(book, id, before, traffic);
    } catch (error) {
      this.#env.onFailure(error);
    }
  }

  #publish(
    book: UserBook,
    before: UserRecord | null,
    after: UserRecord | null,
    traffic: Traffic | undefined,
  ): void {
    this.#books.set(book.listener, book);
    if (before !== null && before.token !== after?.token) this.#tokens.delete(before.token);
    if (after !== null && before?.token !== after.token) this.#tokens.add(book, after.id, after.token);
    if (after === null && before !== null) this.counters.delete(book.listener, before.id);
    else if (after !== null && traffic !== undefined) this.counters.set(book.listener, after.id, traffic);
  }

  // --- looking things up ---

  #managed(): readonly { readonly book: UserBook; readonly listener: ManagedListener }[] {
    return [...this.#listeners.values()]
      .map((listener) => ({ listener, book: this.#books.get(listener.name) as UserBook }))
      .sort((a, b) => compareBytes(a.book.listener, b.book.listener));
  }

  #find(id: string): Found | null {
    for (const [name, listener] of this.#listeners) {
      const book = this.#books.get(name) as UserBook;
      const user = book.users.get(id);
      if (user !== undefined) return { book, user, listener };
    }
    return null;
  }

  #demand(id: string): Found {
    const found = this.#find(id);
    if (found === null) throw new ApiError(404, "user not found");
    return found;
  }

  #traffic({ listener }: UserBook, { id }: UserRecord): Traffic {
    return this.counters.get(listener, id) ?? NO_TRAFFIC;
  }

  #detail(found: Found): UserDetailView {
    const { book, user, listener } = found;
    const active = this.#activeConnections().get(keyOf(book, user)) ?? 0;
    const view = userView(book, user, this.#traffic(book, user), active);
    return detailView(view, user, listener, this.#subscriptionUrl(found));
  }

  #subscriptionUrl(found: Found): string | null {
    if (this.#link(found) === null) return null;
    return `${this.#settings.publicBaseUrl}/sub/svc/${found.user.token}`;
  }

  #link({ book, user, listener }: Found): string | null {
    const present = [...this.#env.inbounds()].findLast(({ name }) => name === book.listener);
    return shareLinkOf(book, user, listener, this.#settings, present?.endpoints ?? []);
  }

  #activeConnections(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { metadata } of this.#env.live) {
      const { name, user } = metadata.inbound;
      if (user === null || !this.#listeners.has(name)) continue;
      const key = `${name}\n${user}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  }
}

function keyOf({ listener }: UserBook, { id }: UserRecord): string {
  return `${listener}\n${id}`;
}

function unknownListener(): ApiError {
  return new ApiError(404, "inbound not found or not managed");
}
