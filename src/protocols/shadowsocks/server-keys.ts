/** The users of a server and their keys. Immutable: other users are another value. */
import { ConfigError } from "#core/errors.ts";
import type { User } from "#core/inbound.ts";
import type { UserTable } from "#protocols/managed/user-inbound.ts";
import { keyName, masterKey, type Method, preSharedKey, preSharedKeys } from "./methods.ts";
import { itemAt, lastOf } from "#lib/at.ts";

export interface UserKey {
  /** Null: the server has one key and no users. */
  readonly user: string | null;
  readonly key: Buffer;
}

export interface ServerKeys {
  readonly method: Method;
  /** Never empty but for a server of many users that has none at the moment. */
  readonly candidates: readonly UserKey[];
  /** The key that opens identity headers and names users below it; null: clients use the only candidate's key. */
  readonly identity: Buffer | null;
  /** With `identity` by the name that an identity header holds, in latin1; without it by the user's. */
  readonly byName: ReadonlyMap<string, UserKey>;
}

export type ServerUsers = ServerKeys & UserTable;

/** `serverKeys` with an identity for each user's key, by which a change is noticed. */
export function serverUsers(method: Method, password: string, users: readonly User[] | null): ServerUsers {
  const keys = serverKeys(method, password, users);
  const identities = new Map<string, string>();
  for (const { user, key } of keys.candidates) if (user !== null) identities.set(user, key.toString("hex"));
  return { ...keys, identities };
}

/** `users` null: one key for all clients. Throws `ConfigError`. */
export function serverKeys(method: Method, password: string, users: readonly User[] | null): ServerKeys {
  if (users === null) return withoutUsers(method, password);
  if (method.edition === "plain")
    throw new ConfigError("cipher none knows no users: there is no key to tell them apart");
  if (method.edition === "stream")
    throw new ConfigError(
      `cipher ${method.name} knows no users: it does not tell a right key from a wrong one`,
    );
  if (method.edition === "sip004") {
    const candidates = users.map(({ id, credential }) => ({ user: id, key: masterKey(method, credential) }));
    const byName = new Map(candidates.map((entry) => [entry.user, entry]));
    return { method, candidates: distinct(candidates), identity: null, byName };
  }
  if (method.aead === "chacha20-poly1305")
    throw new ConfigError(`${method.name} knows no users: identity headers exist for the AES methods only`);
  const candidates = users.map(({ id, credential }) => ({ user: id, key: preSharedKey(method, credential) }));
  return named(method, preSharedKey(method, password), distinct(candidates));
}

function withoutUsers(method: Method, password: string): ServerKeys {
  const keys = method.edition === "2022" ? preSharedKeys(method, password) : [masterKey(method, password)];
  if (keys.length > 2) throw new ConfigError("a server takes key or serverKey:userKey, not more levels");
  const candidates = [{ user: null, key: lastOf(keys) }];
  if (keys.length === 1) return { method, candidates, identity: null, byName: new Map() };
  return named(method, itemAt(keys, 0), candidates);
}

function named(method: Method, identity: Buffer, candidates: readonly UserKey[]): ServerKeys {
  const byName = new Map(candidates.map((entry) => [keyName(entry.key).toString("latin1"), entry]));
  return { method, candidates, identity, byName };
}

function distinct(candidates: readonly UserKey[]): readonly UserKey[] {
  const owners = new Map<string, string | null>();
  for (const { user, key } of candidates) {
    const text = key.toString("latin1");
    if (owners.has(text))
      throw new ConfigError(
        `users ${owners.get(text)} and ${user} have the same key and could not be told apart`,
      );
    owners.set(text, user);
  }
  return candidates;
}
