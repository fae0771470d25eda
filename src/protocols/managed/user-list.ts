import type { User, UsersChange } from "#core/inbound.ts";

/** Remembers the users in force, so that of a new list only what is new has to be looked at. */
export class UserList {
  readonly #known = new Map<string, User>();

  constructor(users: readonly User[]) {
    for (const user of users) this.#known.set(user.id, user);
  }

  changeTo(users: readonly User[]): UsersChange {
    const come = users.filter((user) => !isSame(user, this.#known.get(user.id)));
    const stay = users.length - come.filter(({ id }) => !this.#known.has(id)).length;
    if (stay === this.#known.size) return { gone: [], come };
    const ids = new Set(users.map(({ id }) => id));
    return { gone: [...this.#known.keys()].filter((id) => !ids.has(id)), come };
  }

  /** The users that a change would leave. */
  after({ gone, come }: UsersChange): readonly User[] {
    const next = new Map(this.#known);
    for (const id of gone) next.delete(id);
    for (const user of come) next.set(user.id, user);
    return [...next.values()];
  }

  take({ gone, come }: UsersChange): void {
    for (const id of gone) this.#known.delete(id);
    for (const user of come) this.#known.set(user.id, user);
  }
}

function isSame(user: User, known: User | undefined): boolean {
  return known !== undefined && known.credential === user.credential && known.flow === user.flow;
}
