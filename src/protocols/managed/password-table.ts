import { createHmac, randomBytes } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { User, UsersChange } from "#core/inbound.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import type { UserTable } from "./user-inbound.ts";

/** What clients send of a password. */
export type ShownForm = (password: string) => Uint8Array;

/** Users by what their clients show of their passwords. */
export class PasswordTable implements UserTable {
  /** A text a user: the digest that the password is looked up by. */
  readonly identities: PersistentMap<string>;
  readonly #byDigest: PersistentMap<string>;
  /** Looked up by a keyed digest: how long that takes says nothing about how much of a guess was right. */
  readonly #key: Buffer;
  readonly #shownOf: ShownForm;

  private constructor(
    { key, shownOf }: { readonly key: Buffer; readonly shownOf: ShownForm },
    identities: PersistentMap<string>,
    byDigest: PersistentMap<string>,
  ) {
    this.#key = key;
    this.#shownOf = shownOf;
    this.identities = identities;
    this.#byDigest = byDigest;
  }

  static empty(shownOf: ShownForm): PasswordTable {
    return new PasswordTable(
      { key: randomBytes(32), shownOf },
      PersistentMap.from([]),
      PersistentMap.from([]),
    );
  }

  /** The user whose client shows this; null where there is none. */
  find(shown: Uint8Array): string | null {
    return this.#byDigest.get(this.#digest(shown)) ?? null;
  }

  /** Of these users. Throws as `changed`. */
  with(users: readonly User[], where: string): PasswordTable {
    return this.changed({ gone: [], come: users }, where);
  }

  /** Throws `ConfigError` for an empty password, and for two users with the same one: they could not be told apart. */
  changed({ gone, come }: UsersChange, where: string): PasswordTable {
    const identities = new Map<string, string | null>(gone.map((id) => [id, null]));
    const byDigest = new Map<string, string | null>();
    for (const id of [...gone, ...come.map((user) => user.id)]) {
      const digest = this.identities.get(id);
      if (digest !== undefined) byDigest.set(digest, null);
    }
    for (const { id, credential } of come) {
      if (credential === "") throw new ConfigError(`${where}: user ${id}: the password is empty`);
      const digest = this.#digest(this.#shownOf(credential));
      const other = byDigest.has(digest) ? byDigest.get(digest) : this.#byDigest.get(digest);
      if (other !== undefined && other !== null)
        throw new ConfigError(`${where}: users ${other} and ${id} have the same password`);
      byDigest.set(digest, id);
      identities.set(id, digest);
    }
    return new PasswordTable(
      { key: this.#key, shownOf: this.#shownOf },
      this.identities.with(identities),
      this.#byDigest.with(byDigest),
    );
  }

  #digest(shown: Uint8Array): string {
    return createHmac("sha256", this.#key).update(shown).digest("latin1");
  }
}
