import type { User } from "#core/inbound.ts";

/** How one list of users becomes another. */
export interface ListChange {
  /** Ids of those that the old list had, as they are now or otherwise, and the new one has not. */
  readonly gone: readonly string[];
  /** New ones, and others than before under the same id. */
  readonly come: readonly User[];
}

/** Remembers the users in force, so that of a new list only what is new has to be looked at. */
export class UserList {
  readonly #known = new Map<string, User>();

  constructor(users: readonly User[]) {
    for (const user of users) this.#known.set(user.id, user);
  }

  changeTo(users: readonly User[]): ListChange {
    const come = users.filter((user) => !isSame(user, this.#known.get(user.id)));
    const stay = users.length - come.filter(({ id }) => !this.#known.has(id)).length;
    if (stay === this.#known.size) return { gone: [], come };
    const ids = new Set(users.map(({ id }) => id));
    return { gone: [...this.#known.keys()].filter((id) => !ids.has(id)), come };
  }

  take({ gone, come }: ListChange): void {
    for (const id of gone) this.#known.delete(id);
    for (const user of come) this.#known.set(user.id, user);
  }
}

function isSame(user: User, known: User | undefined): boolean {
  return known !== undefined && known.credential === user.credential && known.flow === user.flow;
}
