/** The open sessions of a listener's users, so that those of a removed user end at once. */
export class LiveUsers {
  readonly #open = new Map<string, Set<() => void>>();

  /** `end` runs when the user is removed. Dispose it when the session has ended by itself. Null: no user, never ended. */
  add(user: string | null, end: () => void): Disposable {
    if (user === null) return { [Symbol.dispose]() {} };
    const ends = this.#open.get(user) ?? new Set();
    this.#open.set(user, ends);
    ends.add(end);
    return {
      [Symbol.dispose]: () => {
        ends.delete(end);
        if (ends.size === 0 && this.#open.get(user) === ends) this.#open.delete(user);
      },
    };
  }

  /** Ends all sessions of users for whom `stays` is false. */
  retain(stays: (user: string) => boolean): void {
    for (const [user, ends] of this.#open) {
      if (stays(user)) continue;
      this.#open.delete(user);
      for (const end of ends) end();
    }
  }
}
