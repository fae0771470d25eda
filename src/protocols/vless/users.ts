import { ConfigError } from "#core/errors.ts";
import type { User, UsersChange } from "#core/inbound.ts";
import type { WrittenUsers } from "#core/written-users.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { PersistentMap } from "#lib/persistent-map.ts";
import type { UserTable as ManagedTable } from "#protocols/managed/user-inbound.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { ID_BYTES, VISION } from "./wire.ts";

export interface VlessUser {
  readonly name: string;
  readonly id: Buffer;
  readonly flow: string;
}

/** Users by the 16 bytes of their ids. Looked up as a whole, so that timing reveals nothing about single bytes. */
export interface UserTable extends ManagedTable {
  readonly usesVision: boolean;
  find(id: Buffer): VlessUser | null;
}

/** Throws `ConfigError` where an id is none, appears twice, or the flow is unknown. */
export function userTable(users: readonly User[], where: string): VlessTable {
  return VlessTable.EMPTY.changed({ gone: [], come: users }, where);
}

class VlessTable implements UserTable {
  static readonly EMPTY = new VlessTable(PersistentMap.from([]), PersistentMap.from([]), 0);
  readonly identities: PersistentMap<string>;
  /** By the bytes of the id as latin1. */
  readonly #byId: PersistentMap<VlessUser>;
  readonly #visions: number;

  private constructor(identities: PersistentMap<string>, byId: PersistentMap<VlessUser>, visions: number) {
    this.identities = identities;
    this.#byId = byId;
    this.#visions = visions;
  }

  get usesVision(): boolean {
    return this.#visions > 0;
  }

  find(id: Buffer): VlessUser | null {
    return this.#byId.get(id.toString("latin1")) ?? null;
  }

  /** Those without a flow: what one leaves behind is the main thread's to look at. */
  written(): Omit<WrittenUsers, "type"> {
    const plain = [...this.#byId.entries()].filter(([, { flow }]) => flow === "");
    return { protocol: "vless", keys: plain.map(([key]) => key), names: plain.map(([, { name }]) => name) };
  }

  /** Throws `ConfigError` as above. */
  changed({ gone, come }: UsersChange, where: string): VlessTable {
    const byId = new Map<string, VlessUser | null>();
    const identities = new Map<string, string | null>(gone.map((name) => [name, null]));
    let visions = this.#visions;
    for (const name of [...gone, ...come.map(({ id }) => id)]) {
      const [key, flow] = partsOf(this.identities.get(name));
      if (key !== "") byId.set(key, null);
      if (flow === VISION) visions--;
    }
    for (const user of come.map((one) => vlessUser(one, where))) {
      const key = user.id.toString("latin1");
      const other = byId.has(key) ? byId.get(key) : this.#byId.get(key);
      if (other !== undefined && other !== null)
        throw new ConfigError(`${where}: users ${other.name} and ${user.name} have the same uuid`);
      byId.set(key, user);
      identities.set(user.name, `${key}${user.flow}`);
      if (user.flow === VISION) visions++;
    }
    return new VlessTable(this.identities.with(identities), this.#byId.with(byId), visions);
  }
}

/** Of an identity: the key of the user and the flow. */
function partsOf(identity = ""): readonly [key: string, flow: string] {
  return [identity.slice(0, ID_BYTES), identity.slice(ID_BYTES)];
}

function vlessUser({ id: name, credential, flow }: User, where: string): VlessUser {
  const id = parseUserId(credential);
  if (id === null)
    throw new ConfigError(`${where}: user ${name}: the uuid is neither a UUID nor a text of 1 to 30 bytes`);
  if (flow !== null && flow !== "" && flow !== VISION)
    throw new ConfigError(
      `${where}: user ${name}: flow ${flow}, expected ${VISION} or nothing${suggestion(flow, [VISION])}`,
    );
  return { name, id, flow: flow ?? "" };
}
