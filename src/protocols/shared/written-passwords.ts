import type { WrittenUser } from "#core/protocol.ts";

/** The users of a map of names to passwords, ordered by the bytes of their names. */
export function writtenPasswords(users: Readonly<Record<string, string>>): readonly WrittenUser[] {
  return Object.entries(users)
    .map(([name, credential]) => ({ name, credential, flow: "" }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
}
