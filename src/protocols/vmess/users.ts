import { ConfigError } from "#core/errors.ts";
import type { User } from "#core/inbound.ts";
import type { UserTable } from "#protocols/managed/user-inbound.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { AUTH_ID_BYTES, authIdKey, openAuthId } from "./header.ts";
import { commandKey } from "./kdf.ts";

export interface VmessUser {
  readonly name: string;
  readonly id: Buffer;
  readonly commandKey: Buffer;
  readonly authIdKey: Buffer;
}

export interface VmessUsers extends UserTable {
  readonly all: readonly VmessUser[];
}

/** Throws `ConfigError` where an id is none or appears twice. */
export function vmessUsers(users: readonly User[], where: string): VmessUsers {
  const owners = new Map<string, string>();
  const all = users.map(({ id: name, credential }) => {
    const id = parseUserId(credential);
    if (id === null)
      throw new ConfigError(`${where}: user ${name}: the uuid is neither a UUID nor a text of 1 to 30 bytes`);
    const other = owners.get(id.toString("latin1"));
    if (other !== undefined) throw new ConfigError(`${where}: users ${other} and ${name} have the same uuid`);
    owners.set(id.toString("latin1"), name);
    const key = commandKey(id);
    return { name, id, commandKey: key, authIdKey: authIdKey(key) };
  });
  return { all, identities: new Map(all.map((user) => [user.name, user.id.toString("hex")])) };
}

/** Tries every user's key: one block of AES each. */
export function findByAuthId(
  users: readonly VmessUser[],
  prefix: Buffer,
): { readonly user: VmessUser; readonly unixSeconds: number } | null {
  const authId = prefix.subarray(0, AUTH_ID_BYTES);
  for (const user of users) {
    const unixSeconds = openAuthId(user.authIdKey, authId);
    if (unixSeconds !== null) return { user, unixSeconds };
  }
  return null;
}
