/** Enforces limits over time: blocks users whose quota is used up or whose time is over, and unblocks them later. */
import { valueAt } from "#lib/at.ts";
import type { Shared } from "./changes.ts";
import { eventUser } from "./user-reports.ts";
import { toggled } from "./user-registry.ts";
import * as books from "./user-book.ts";

export class LimitMonitor {
  readonly #shared: Shared;
  #isLooking = false;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  /** Never rejects. Does nothing while the look before is not over: it may wait for the medium. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { queues, registry } = this.#shared;
    const listeners = [...registry.turned().keys()];
    await Promise.allSettled(listeners.map((name) => queues.on(name, () => this.#turn(name))));
    this.#isLooking = false; // where too many waited in a lane the next look comes soon
  }

  async #turn(name: string): Promise<void> {
    const { env, repository, registry, isOver } = this.#shared;
    const turned = registry.turned().get(name) ?? [];
    if (turned.length === 0) return;
    // Written first: a user who was disconnected must not be admitted again after a crash.
    const moved = turned.map(({ counter }) => counter).filter(({ isChanged }) => isChanged);
    if (moved.length > 0) await repository.save(moved, { backup: false });
    if (isOver()) return;
    for (const { user, bar } of turned)
      env.log.info(() => `user ${user.name} of ${name}: ${bar ?? "active again"}`);
    const blocked = toggled(
      registry.blocked,
      turned.map(({ user }) => user.id),
    );
    const book = valueAt(registry.books, name);
    const targets = [...env.inbounds()].filter((inbound) => inbound.name === name);
    try {
      for (const target of targets) target.replaceUsers(books.activeUsers(book, blocked));
      registry.blocked = blocked;
      for (const { user, bar } of turned) env.events.limited(eventUser({ book, user }), bar);
    } catch (error) {
      env.onFailure(error); // a user without quota must not stay connected
    }
  }
}
