import { ConfigError } from "#core/errors.ts";
import { itemAt } from "#lib/at.ts";
import type { User } from "#core/inbound.ts";
import type { UserTable } from "#protocols/managed/user-inbound.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { BlockKeys } from "#protocols/crypto/block-keys.ts";
import { AUTH_ID_BYTES, authIdKey, timeOfAuthId } from "./header.ts";
import { commandKey } from "./kdf.ts";

export interface VmessUser {
  readonly name: string;
  readonly id: Buffer;
  readonly commandKey: Buffer;
}

export interface VmessUsers extends UserTable {
  readonly all: readonly VmessUser[];
  /** By which their clients seal what comes first, in the same order. */
  readonly authIdKeys: BlockKeys;
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
    return { name, id, commandKey: commandKey(id) };
  });
  const authIdKeys = new BlockKeys(all.map((user) => authIdKey(user.commandKey)));
  return { all, authIdKeys, identities: new Map(all.map((user) => [user.name, user.id.toString("hex")])) };
}

/** Tries every user's key: one block of AES each. */
export function findByAuthId(
  { all, authIdKeys }: Pick<VmessUsers, "all" | "authIdKeys">,
  prefix: Buffer,
): { readonly user: VmessUser; readonly unixSeconds: number } | null {
  const known = authIdKeys.find(prefix.subarray(0, AUTH_ID_BYTES), timeOfAuthId);
  return known === null ? null : { user: itemAt(all, known.index), unixSeconds: known.found };
}
