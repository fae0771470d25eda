import { randomUUID } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import { NO_LIMITS } from "./limits.ts";
import { NO_REMARKS } from "./remarks.ts";
import type { ManagedListener } from "./settings.ts";
import { newToken } from "./tokens.ts";
import { nextRevision, type UserBook, type UserRecord } from "./user-book.ts";

/** The first book of a listener: the users that the file names, once. Throws `ConfigError` where two have one credential. */
export function seedBook({ name, protocol, support, options }: ManagedListener, nowMs: number): UserBook {
  const users = new Map<string, UserRecord>();
  const names = new Set<string>();
  const identities = new Set<string | null>();
  for (const [at, written] of support.written(options).entries()) {
    const identity = support.identify(written.credential);
    if (identity === null || identities.has(identity))
      throw new ConfigError(`listener ${name}: user ${at + 1} has no ${support.credential} of its own`);
    identities.add(identity);
    const id = randomUUID();
    users.set(id, {
      id,
      name: freeName(written.name.trim() || `user-${at + 1}`, names),
      credential: written.credential,
      flow: written.flow,
      enabled: true,
      trafficGeneration: 1,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      token: newToken(),
      limits: NO_LIMITS,
      remarks: NO_REMARKS,
    });
  }
  const revision = nextRevision(0, nowMs);
  return { id: randomUUID(), listener: name, protocol, revision, appliedRevision: 0, users };
}

/** `alice`, and `alice-2` where there is one already, in any case. */
function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let at = 2; taken.has(name.toLowerCase()); at++) name = `${wanted}-${at}`;
  taken.add(name.toLowerCase());
  return name;
}
