/**
 * Which users have a name or a credential, and how many are enabled; with thousands of users a walk through all would be
 * most of a change.
 */
import { ApiError } from "#core/errors.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import type { UserSupport } from "#core/protocol.ts";

/** What is indexed of a user. */
interface Listed {
  readonly id: string;
  readonly name: string;
  readonly credential: string;
  readonly enabled: boolean;
}

/** Of the users of one book. Immutable, as the book is. */
export class BookIndex {
  readonly #support: UserSupport;
  /** Ids by what two users may not have in common. */
  readonly #names: PersistentMap<string>;
  readonly #identities: PersistentMap<string>;
  readonly enabledCount: number;

  private constructor(
    support: UserSupport,
    names: PersistentMap<string>,
    identities: PersistentMap<string>,
    enabledCount: number,
  ) {
    this.#support = support;
    this.#names = names;
    this.#identities = identities;
    this.enabledCount = enabledCount;
  }

  static of(users: Iterable<Listed>, support: UserSupport): BookIndex {
    const all = [...users];
    return new BookIndex(
      support,
      PersistentMap.from(all.map((user) => [nameKey(user), user.id])),
      PersistentMap.from(all.map((user) => [identityOf(user, support), user.id])),
      all.filter(({ enabled }) => enabled).length,
    );
  }

  /** Throws `ApiError` 400 where another user of the listener has the name or the credential. */
  refuseDoubles(listener: string, user: Listed): void {
    const isOther = (id: string | undefined) => id !== undefined && id !== user.id;
    if (isOther(this.#names.get(nameKey(user))))
      throw new ApiError(400, `name: listener ${listener} has a user of this name`);
    if (isOther(this.#identities.get(identityOf(user, this.#support))))
      throw new ApiError(
        400,
        `${this.#support.credential}: another user of listener ${listener} has the same`,
      );
  }

  with(before: Listed | null, after: Listed | null): BookIndex {
    const ofBoth = (keyOf: (user: Listed) => string) => [
      ...(before === null ? [] : [[keyOf(before), null] as const]),
      ...(after === null ? [] : [[keyOf(after), after.id] as const]),
    ];
    return new BookIndex(
      this.#support,
      this.#names.with(ofBoth(nameKey)),
      this.#identities.with(ofBoth((user) => identityOf(user, this.#support))),
      this.enabledCount + Number(after?.enabled ?? false) - Number(before?.enabled ?? false),
    );
  }
}

/** Names that differ in case only are one name. */
function nameKey({ name }: Listed): string {
  return name.toLowerCase();
}

function identityOf({ credential }: Listed, support: UserSupport): string {
  return support.identify(credential) ?? credential;
}
