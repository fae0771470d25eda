import { createHmac, randomBytes } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { User } from "#core/inbound.ts";
import type { UserTable as ManagedTable } from "#protocols/managed/shell.ts";
import { passwordHash } from "./wire.ts";

export interface UserTable extends ManagedTable {
  /** The user whose password has this SHA-256; null where there is none. */
  find(hash: Buffer): string | null;
}

/** Throws `ConfigError` for two users with one password, whom nobody could tell apart, and for an empty one. */
export function userTable(users: readonly User[], where: string): UserTable {
  // Looked up by a keyed digest: how long that takes says nothing about how much of a guess was right.
  const key = randomBytes(32);
  const digest = (hash: Buffer) => createHmac("sha256", key).update(hash).digest("latin1");
  const byDigest = new Map<string, string>();
  const identities = new Map<string, string>();
  for (const { id, credential } of users) {
    if (credential === "") throw new ConfigError(`${where}: user ${id}: the password is empty`);
    const hash = passwordHash(credential);
    const other = byDigest.get(digest(hash));
    if (other !== undefined)
      throw new ConfigError(`${where}: users ${other} and ${id} have the same password`);
    byDigest.set(digest(hash), id);
    identities.set(id, hash.toString("hex"));
  }
  return { identities, find: (hash) => byDigest.get(digest(hash)) ?? null };
}
