/**
 * The way of a change: build the next book, check it, write it to the state file; then, in one turn of the event loop,
 * hand it to the listener and make it the present one. While it is written it is not visible.
 */
import { randomUUID } from "node:crypto";
import { ApiError, messageOf } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import { itemAt } from "#lib/at.ts";
import type { KeyedQueue } from "#lib/keyed-queue.ts";
import type { UserChange, UserDetailView, UserDraft } from "#core/users.ts";
import { Allowance } from "./allowance.ts";
import { type Counted, NO_TRAFFIC, type Traffic } from "./counters.ts";
import type { ChangeKind, UserRepository } from "./user-repository.ts";
import { NO_LIMITS } from "./limits.ts";
import type { ManagerEnv } from "./manager-env.ts";
import { barOf, type Found, type UserRegistry, toggled } from "./user-registry.ts";
import type { ManagedListener } from "./settings.ts";
import type { UserViews } from "./user-views.ts";
import { eventUser, reportChange } from "./user-reports.ts";
import { newToken } from "./tokens.ts";
import * as books from "./user-book.ts";
import type { UserBook, UserRecord } from "./user-book.ts";

/** What the parts of a manager share. */
export interface Shared {
  readonly env: ManagerEnv;
  readonly registry: UserRegistry;
  readonly repository: UserRepository;
  readonly views: UserViews;
  /** By listener. */
  readonly queues: KeyedQueue;
  /** The manager has been closed, perhaps while something was written. */
  readonly isOver: () => boolean;
}

/** One user's change: what was, what will be, and counters that replace the user's. */
export interface Step {
  readonly before: UserRecord | null;
  readonly after: UserRecord | null;
  readonly traffic?: Traffic;
}

interface Place {
  readonly book: UserBook;
  readonly listener: ManagedListener;
}

export class Changes {
  readonly #shared: Shared;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  create(draft: UserDraft): Promise<UserDetailView> {
    const { env, registry, views } = this.#shared;
    return this.#inTurn(draft.inbound, draft.revision, async () => {
      const listener = registry.listeners.get(draft.inbound);
      const book = registry.books.get(draft.inbound);
      if (listener === undefined || book === undefined)
        throw new ApiError(404, "inbound not found or not managed");
      books.checkRevision(book, draft.revision);
      const fresh = { id: randomUUID(), token: newToken(), createdAtMs: Math.trunc(env.nowMs()) };
      const user = books.recordOf(draft, listener.support, fresh);
      return views.detail(
        await this.#change({ book, listener }, "create", { before: null, after: user, traffic: NO_TRAFFIC }),
      );
    });
  }

  async update(id: string, change: UserChange): Promise<UserDetailView> {
    const found = await this.#changeUser(id, change.revision, "update", ({ user, listener }) => ({
      before: user,
      after: books.changedRecord(user, change, listener.support, Math.trunc(this.#shared.env.nowMs())),
    }));
    return this.#shared.views.detail(found);
  }

  async remove(id: string, revision: number): Promise<void> {
    await this.#changeUser(id, revision, "delete", ({ user }) => ({ before: user, after: null }));
  }

  async resetTraffic(id: string, revision: number): Promise<UserDetailView> {
    const found = await this.#changeUser(id, revision, "reset-traffic", ({ user }) => ({
      before: user,
      after: { ...user, trafficGeneration: user.trafficGeneration + 1 },
      traffic: NO_TRAFFIC,
    }));
    return this.#shared.views.detail(found);
  }

  async rotateSubscription(
    id: string,
    revision: number,
  ): Promise<{ readonly revision: number; readonly subscriptionUrl: string }> {
    const found = await this.#changeUser(id, revision, "rotate-subscription", ({ user }) => ({
      before: user,
      after: { ...user, token: newToken() },
    }));
    const subscriptionUrl = this.#shared.views.subscriptionUrl(found) ?? "";
    return { revision: found.book.revision, subscriptionUrl };
  }

  /** Puts a step in force that the file has already, with `next` as the book in it. Rejects as a change does. */
  adopt({ book }: Place, next: UserBook, step: Step): Promise<void> {
    return this.#apply(book, next, step);
  }

  /** The same for many, in one turn of the event loop. Throws what a listener throws, with the old users in force. */
  adoptAll({ book }: Place, next: UserBook, steps: readonly Step[]): void {
    const { env, registry } = this.#shared;
    const counted = steps.map((step) => this.#countedAfter(book, userOf(step), step));
    const blocked = new Set(registry.blocked);
    const gone: string[] = [];
    const come: UserRecord[] = [];
    for (const [at, step] of steps.entries()) {
      const { before, after } = step;
      const { id } = userOf(step);
      const knew = before?.enabled === true && !registry.blocked.has(id) ? before : null;
      const isBlocked = after !== null && barOf(itemAt(counted, at), env.nowMs()) !== null;
      if (isBlocked) blocked.add(id);
      else blocked.delete(id);
      const now = after?.enabled === true && !isBlocked ? after : null;
      if (!books.changesListener(knew, now)) continue;
      if (now === null) gone.push(id);
      else come.push(now);
    }
    if (gone.length + come.length > 0)
      for (const target of this.#targets(book))
        books.changeListenerUsers(target, { book: next, blocked, gone, come });
    registry.blocked = blocked;
    for (const [at, step] of steps.entries()) this.#publish(next, step, itemAt(counted, at));
    registry.books.set(next.listener, next);
  }

  /** A user stays at one listener, so its lane is known before the user is looked at. */
  async #changeUser(
    id: string,
    revision: number,
    kind: ChangeKind,
    stepOf: (found: Found) => Step,
  ): Promise<Found> {
    const { registry, repository } = this.#shared;
    if (registry.find(id) === null) await repository.refresh(null, null);
    const { listener } = this.#demand(id).book;
    return this.#inTurn(listener, revision, async () => {
      const found = this.#demand(id);
      books.checkRevision(found.book, revision);
      return this.#change(found, kind, stepOf(found));
    });
  }

  /**
   * In the listener's queue. Others may have gone on from `revision`, which is to be said before a fault in a field: so where
   * one is found, it is judged again by what they have made of the users.
   */
  #inTurn<T>(listener: string, revision: number, work: () => Promise<T>): Promise<T> {
    const { queues, registry, repository } = this.#shared;
    return queues.on(listener, async () => {
      if (!registry.listeners.has(listener)) return work(); // which says so
      await repository.refresh(listener, revision);
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 400) throw error;
        await repository.refresh(listener, null);
        return work();
      }
    });
  }

  #demand(id: string): Found {
    const found = this.#shared.registry.find(id);
    if (found === null) throw new ApiError(404, "user not found");
    return found;
  }

  async #change({ book, listener }: Place, kind: ChangeKind, step: Step): Promise<Found> {
    const { env, registry, repository, isOver } = this.#shared;
    const user = userOf(step);
    const { uploadBytes, downloadBytes, allowance } = this.#countedAfter(book, user, step);
    const checked = books.withUser(book, user.id, step.after, listener.support, env.nowMs());
    const runs = this.#targets(book).length > 0;
    const next = runs ? { ...checked, appliedRevision: checked.revision } : checked;
    const usage = allowance?.store() ?? null;
    const history = registry.counters.get(book.listener, user.id)?.history ?? null;
    const traffic = { uploadBytes, downloadBytes, usage, history };
    await repository.keep(next, user.id, step.after, traffic, kind);
    if (isOver()) throw new Error(`listener ${book.listener}: users are managed no more`);
    await this.#apply(book, next, step);
    return { book: next, user, listener };
  }

  /** With what was counted while the file was written. All in one turn, unless the listener refuses. */
  async #apply(book: UserBook, next: UserBook, step: Step): Promise<void> {
    const { env, registry } = this.#shared;
    const { before, after } = step;
    const user = userOf(step);
    const counted = this.#countedAfter(book, user, step);
    const isBlocked = after !== null && barOf(counted, env.nowMs()) !== null;
    const blocked =
      isBlocked === registry.blocked.has(user.id) ? registry.blocked : toggled(registry.blocked, [user.id]);
    const wasBlocked = registry.blocked.has(user.id);
    const knew = before?.enabled === true && !registry.blocked.has(user.id) ? before : null;
    if (books.changesListener(knew, after?.enabled === true && !isBlocked ? after : null)) {
      const targets = this.#targets(book);
      try {
        for (const target of targets) books.changeListener(target, next, blocked, user.id);
      } catch (error) {
        env.log.error(`listener ${book.listener}: ${messageOf(error)}`);
        await this.#takeBack(next, book, targets, user.id, before);
        // Whatever it is to the listener, it is no mistake of the caller.
        throw new ApiError(500, `listener ${book.listener}: users not taken; everything is as before`, {
          cause: error,
        });
      }
    }
    registry.blocked = blocked;
    this.#publish(next, step, counted);
    reportChange(next, before, after, env.events);
    if (after !== null && (before?.limits !== after.limits || isBlocked !== wasBlocked))
      env.events.limited(eventUser({ book: next, user: after }), barOf(counted, env.nowMs()));
  }

  /** What will have been counted for the user, and by which limits. */
  #countedAfter({ listener }: UserBook, user: UserRecord, { before, traffic }: Step): Counted {
    const { env, registry } = this.#shared;
    if (traffic !== undefined) return registry.countedOf(user, traffic);
    const counter = registry.counters.get(listener, user.id);
    if (counter === null || before?.limits === user.limits)
      return counter ?? { ...NO_TRAFFIC, allowance: null };
    const { uploadBytes, downloadBytes, usage, allowance } = counter;
    if (user.limits === NO_LIMITS) return { uploadBytes, downloadBytes, allowance: null };
    const nowMs = env.monotonicMs();
    return {
      uploadBytes,
      downloadBytes,
      allowance: new Allowance(user.limits, nowMs, registry.time, usage, allowance),
    };
  }

  #targets({ listener }: UserBook): readonly ManagedInbound[] {
    return [...this.#shared.env.inbounds()].filter(({ name }) => name === listener);
  }

  /** A listener did not take its users: it gets the old ones, and the file the old user with what is counted now. */
  async #takeBack(
    next: UserBook,
    book: UserBook,
    targets: readonly ManagedInbound[],
    id: string,
    before: UserRecord | null,
  ): Promise<void> {
    const { env, repository, registry } = this.#shared;
    try {
      for (const target of targets) target.replaceUsers(books.activeUsers(book, registry.blocked));
      const traffic = registry.counters.get(book.listener, id) ?? NO_TRAFFIC;
      registry.books.set(book.listener, await repository.takeBack(next, book, id, before, traffic));
    } catch (error) {
      env.onFailure(error);
    }
  }

  #publish(book: UserBook, { before, after, traffic }: Step, counted: Counted): void {
    const { books: all, counters, presences, removed, settled, tokens } = this.#shared.registry;
    const nowMs = this.#shared.env.nowMs();
    all.set(book.listener, book);
    if (before !== null && before.token !== after?.token) tokens.delete(before.token);
    if (after !== null && before?.token !== after.token) tokens.add(book, after.id, after.token);
    if (after === null) {
      if (before === null) return;
      const history = counters.get(book.listener, before.id)?.history ?? null;
      counters.delete(book.listener, before.id);
      if (history !== null && !history.isEmpty)
        removed.add(before.id, {
          listener: book.listener,
          removedAtMs: settled.nowSeconds() * 1000,
          history,
        });
      return;
    }
    removed.takeOut(after.id);
    if (traffic !== undefined) counters.set(book.listener, after.id, counted, nowMs);
    if (before === null || before.limits === after.limits) return;
    counters.limit(book.listener, after.id, counted.allowance, nowMs);
    presences.get(book.listener, after.id)?.enforce(after.limits);
  }
}

/** Whom a step is about: as he is after it, or was before. */
function userOf({ before, after }: Step): UserRecord {
  const user = after ?? before;
  if (user === null) throw new RangeError("a change of users names no user");
  return user;
}
