import { DialError } from "#core/errors.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Ip } from "#core/session.ts";
import { familyOf } from "#net/address/ip.ts";

/** Knows no name. */
export const literalsOnly: Resolver = {
  lookup: (host) => Promise.reject(new DialError("resolve", `${host}: this test has no names`)),
};

/** Knows what it is told. */
export function tableResolver(table: Readonly<Record<string, readonly string[]>>): Resolver {
  return {
    async lookup(host, { family }) {
      const answers = (table[host] ?? [])
        .map((ip) => ({ ip: ip as Ip, ttlMs: 60_000 }))
        .filter(({ ip }) => family === undefined || familyOf(ip) === family);
      if (answers.length === 0) throw new DialError("resolve", `${host}: no address`);
      return answers;
    },
  };
}
