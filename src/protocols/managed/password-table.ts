import { createHmac, randomBytes } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { User, UsersChange } from "#core/inbound.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import type { UserTable as ManagedTable } from "#protocols/managed/user-inbound.ts";
import { passwordHash } from "./wire.ts";

export interface UserTable extends ManagedTable {
  /** The user whose password has this SHA-256; null where there is none. */
  find(hash: Buffer): string | null;
}

/** Throws `ConfigError` for an empty password, and for two users with the same one: they could not be told apart. */
export function userTable(users: readonly User[], where: string): AnyTlsTable {
  return AnyTlsTable.empty().changed({ gone: [], come: users }, where);
}

export class AnyTlsTable implements UserTable {
  /** A text a user: the digest that the password is looked up by. */
  readonly identities: PersistentMap<string>;
  readonly #byDigest: PersistentMap<string>;
  /** Looked up by a keyed digest: how long that takes says nothing about how much of a guess was right. */
  readonly #key: Buffer;

  private constructor(key: Buffer, identities: PersistentMap<string>, byDigest: PersistentMap<string>) {
    this.#key = key;
    this.identities = identities;
    this.#byDigest = byDigest;
  }

  static empty(): AnyTlsTable {
    return new AnyTlsTable(randomBytes(32), PersistentMap.from([]), PersistentMap.from([]));
  }

  find(hash: Buffer): string | null {
    return this.#byDigest.get(this.#digest(hash)) ?? null;
  }

  /** Throws `ConfigError` as above. */
  changed({ gone, come }: UsersChange, where: string): AnyTlsTable {
    const identities = new Map<string, string | null>(gone.map((id) => [id, null]));
    const byDigest = new Map<string, string | null>();
    for (const id of [...gone, ...come.map((user) => user.id)]) {
      const digest = this.identities.get(id);
      if (digest !== undefined) byDigest.set(digest, null);
    }
    for (const { id, credential } of come) {
      if (credential === "") throw new ConfigError(`${where}: user ${id}: the password is empty`);
      const digest = this.#digest(passwordHash(credential));
      const other = byDigest.has(digest) ? byDigest.get(digest) : this.#byDigest.get(digest);
      if (other !== undefined && other !== null)
        throw new ConfigError(`${where}: users ${other} and ${id} have the same password`);
      byDigest.set(digest, id);
      identities.set(id, digest);
    }
    return new AnyTlsTable(this.#key, this.identities.with(identities), this.#byDigest.with(byDigest));
  }

  #digest(hash: Buffer): string {
    return createHmac("sha256", this.#key).update(hash).digest("latin1");
  }
}
