import { ConfigError } from "#core/errors.ts";
import type { User } from "#core/inbound.ts";
import type { UserTable as ManagedTable } from "#protocols/managed/shell.ts";
import { parseUserId } from "./user-id.ts";
import { VISION } from "./wire.ts";

export interface VlessUser {
  readonly name: string;
  readonly id: Buffer;
  readonly flow: string;
}

/** Users by the 16 bytes of their ids. Looked up as a whole, so time tells nothing about single bytes. */
export interface UserTable extends ManagedTable {
  readonly usesVision: boolean;
  find(id: Buffer): VlessUser | null;
}

/** Throws `ConfigError` where an id is none, appears twice, or the flow is unknown. */
export function userTable(users: readonly User[], where: string): UserTable {
  const byId = new Map<string, VlessUser>();
  for (const { id: name, credential, flow } of users) {
    const id = parseUserId(credential);
    if (id === null)
      throw new ConfigError(`${where}: user ${name}: the uuid is neither a UUID nor a text of 1 to 30 bytes`);
    if (flow !== null && flow !== "" && flow !== VISION)
      throw new ConfigError(`${where}: user ${name}: flow ${flow}, expected ${VISION} or nothing`);
    const key = id.toString("latin1");
    const other = byId.get(key);
    if (other !== undefined)
      throw new ConfigError(`${where}: users ${other.name} and ${name} have the same uuid`);
    byId.set(key, { name, id, flow: flow ?? "" });
  }
  const all = [...byId.values()];
  return {
    identities: new Map(all.map((user) => [user.name, `${user.id.toString("hex")} ${user.flow}`])),
    usesVision: all.some(({ flow }) => flow === VISION),
    find: (id) => byId.get(id.toString("latin1")) ?? null,
  };
}
