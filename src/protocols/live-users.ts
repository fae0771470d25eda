import { PassingMap } from "#lib/passing-map.ts";

/** How one session is ended. */
type Ends = PassingMap<() => void, null>;

/** The open sessions of a listener's users, so that those of a removed user end at once. */
export class LiveUsers {
  /** By what users are taken away: as long as something of theirs may be open, so that it is not forgotten. */
  owner: object | null = null;
  readonly #open = new PassingMap<string, Ends>();

  /** `end` runs when the user is removed. Dispose it when the session has ended by itself. Null: no user, never ended. */
  add(user: string | null, end: () => void): Disposable {
    if (user === null) return NOTHING;
    const ends = this.#open.get(user) ?? this.#enter(user);
    ends.set(end, null);
    return {
      [Symbol.dispose]: () => {
        ends.delete(end);
        if (ends.size === 0 && this.#open.get(user) === ends) this.#open.delete(user);
      },
    };
  }

  #enter(user: string): Ends {
    const ends: Ends = new PassingMap();
    this.#open.set(user, ends);
    return ends;
  }

  /** Ends all sessions of users for whom `stays` is false. */
  retain(stays: (user: string) => boolean): void {
    this.#open.forEachKey((user) => {
      const ends = this.#open.get(user);
      if (ends === undefined || stays(user)) return;
      this.#open.delete(user);
      ends.forEachKey((end) => end());
    });
  }
}

const NOTHING: Disposable = { [Symbol.dispose]() {} };
