/** Users of a listener, as a node of a fleet keeps them. */
import { randomUUID } from "node:crypto";
import { NO_LIMITS } from "#users/limits.ts";
import { NO_REMARKS } from "#users/remarks.ts";
import { newToken } from "#users/tokens.ts";
import type { UserBook, UserRecord } from "#users/user-book.ts";

/** Of vless, at revision 1000. */
export function aBook(listener: string, ...names: readonly string[]): UserBook {
  const users = new Map(names.map(aUser).map((user) => [user.id, user]));
  return { id: randomUUID(), listener, protocol: "vless", revision: 1000, appliedRevision: 1000, users };
}

export function aUser(name: string): UserRecord {
  return {
    id: randomUUID(),
    name,
    credential: randomUUID(),
    flow: "",
    enabled: true,
    trafficGeneration: 1,
    createdAtMs: 1,
    updatedAtMs: 1,
    token: newToken(),
    limits: NO_LIMITS,
    remarks: NO_REMARKS,
  };
}
