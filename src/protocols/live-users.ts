/** What the users of an inbound have open at the moment, so that a user who is taken away loses it at once. */
export class LiveUsers {
  readonly #open = new Map<string, Set<() => void>>();

  /** `end` runs when the user is taken away. Dispose when the conversation ended by itself. Null: no user, never ended. */
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

  /** Ends everything of the users for whom `stays` says no. */
  retain(stays: (user: string) => boolean): void {
    for (const [user, ends] of this.#open) {
      if (stays(user)) continue;
      this.#open.delete(user);
      for (const end of ends) end();
    }
  }
}
