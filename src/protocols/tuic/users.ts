/** Users of a listener, as clients show them: by their uuid, and a key that their password makes. */
import { createHmac, randomBytes } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { User } from "#core/inbound.ts";
import type { UserTable } from "#protocols/managed/user-inbound.ts";
import { uuidBytes } from "./options.ts";

export class TuicUsers implements UserTable {
  /** A text a user: the password. */
  readonly identities: ReadonlyMap<string, string>;
  /** Looked up by a keyed digest: how long that takes says nothing about how much of a guess was right. */
  readonly #byDigest = new Map<string, User>();
  readonly #key = randomBytes(32);

  /** The id of a user is the uuid, the credential the password. Throws `ConfigError`. */
  constructor(users: readonly User[], where: string) {
    this.identities = new Map(users.map(({ id, credential }) => [id, credential]));
    for (const user of users) {
      const uuid = uuidBytes(user.id);
      if (uuid === null) throw new ConfigError(`${where}: users: expected a UUID: its password`);
      if (user.credential === "") throw new ConfigError(`${where}: users: ${user.id}: the password is empty`);
      const digest = this.#digest(uuid);
      if (this.#byDigest.has(digest)) throw new ConfigError(`${where}: users: ${user.id} is there twice`);
      this.#byDigest.set(digest, user);
    }
  }

  /** Null: there is none. */
  find(uuid: Uint8Array): User | null {
    return this.#byDigest.get(this.#digest(uuid)) ?? null;
  }

  #digest(uuid: Uint8Array): string {
    return createHmac("sha256", this.#key).update(uuid).digest("latin1");
  }
}
