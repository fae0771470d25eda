/** Users of a listener, as clients show them: by their uuid, and a key that their password makes. */
import { createHmac, randomBytes } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { User, UsersChange } from "#core/inbound.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import type { UserTable } from "#protocols/managed/user-inbound.ts";
import { uuidBytes } from "./options.ts";

/** What a user of a listener has for a credential: both halves in one text, as in links. */
export function credentialOf(uuid: string, password: string): string {
  return `${uuid}:${password}`;
}

/** Null: there is no UUID before the first colon, or nothing behind it. */
export function parseCredential(
  credential: string,
): { readonly uuid: Buffer; readonly password: string } | null {
  const at = credential.indexOf(":");
  const uuid = at < 0 ? null : uuidBytes(credential.slice(0, at));
  const password = credential.slice(at + 1);
  return uuid === null || password === "" ? null : { uuid, password };
}

export interface TuicUser {
  readonly id: string;
  readonly password: string;
}

export class TuicUsers implements UserTable {
  /** A text a user: the digest of the uuid, and the password. */
  readonly identities: PersistentMap<string>;
  /** Looked up by a keyed digest: how long that takes says nothing about how much of a guess was right. */
  readonly #byDigest: PersistentMap<TuicUser>;
  readonly #key: Buffer;

  private constructor(key: Buffer, identities: PersistentMap<string>, byDigest: PersistentMap<TuicUser>) {
    this.#key = key;
    this.identities = identities;
    this.#byDigest = byDigest;
  }

  /** All tables that are made of one share its key, so that users who stay keep their identity. */
  static empty(): TuicUsers {
    return new TuicUsers(randomBytes(32), PersistentMap.from([]), PersistentMap.from([]));
  }

  /** Of these users; `credential` as `credentialOf` makes it. Throws as `changed`. */
  with(users: readonly User[], where: string): TuicUsers {
    return this.changed({ gone: [], come: users }, where);
  }

  /** Throws `ConfigError` for a credential that is none, and for two users with the same uuid. */
  changed({ gone, come }: UsersChange, where: string): TuicUsers {
    const identities = new Map<string, string | null>(gone.map((id) => [id, null]));
    const byDigest = new Map<string, TuicUser | null>();
    for (const id of [...gone, ...come.map((user) => user.id)]) {
      const identity = this.identities.get(id);
      if (identity !== undefined) byDigest.set(digestIn(identity), null);
    }
    for (const { id, credential } of come) {
      const { uuid, password } = checked(credential, `${where}: users`);
      const digest = this.#digest(uuid);
      const other = byDigest.has(digest) ? byDigest.get(digest) : this.#byDigest.get(digest);
      if (other !== undefined && other !== null)
        throw new ConfigError(`${where}: users: a UUID is there twice, of ${other.id} and ${id}`);
      byDigest.set(digest, { id, password });
      identities.set(id, digest + password);
    }
    return new TuicUsers(this.#key, this.identities.with(identities), this.#byDigest.with(byDigest));
  }

  /** Null: there is none. */
  find(uuid: Uint8Array): TuicUser | null {
    return this.#byDigest.get(this.#digest(uuid)) ?? null;
  }

  #digest(uuid: Uint8Array): string {
    return createHmac("sha256", this.#key).update(uuid).digest("latin1");
  }
}

const DIGEST_CHARACTERS = 32;

function digestIn(identity: string): string {
  return identity.slice(0, DIGEST_CHARACTERS);
}

function checked(credential: string, where: string): { readonly uuid: Buffer; readonly password: string } {
  const found = parseCredential(credential);
  if (found !== null) return found;
  const [name = ""] = credential.split(":", 1);
  if (uuidBytes(name) === null) throw new ConfigError(`${where}: expected a UUID: its password`);
  throw new ConfigError(`${where}: ${name}: the password is empty`);
}
