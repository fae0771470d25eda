/** The frame of rules that test one address, of the destination or of the source. */
import type { Matcher, RuleOptions } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";

/** `no-resolve` answers "no" while the address is unknown, so that it is not looked up; the source is always known. */
export function addressMatcher({ noResolve, source }: RuleOptions, test: (address: Ip) => boolean): Matcher {
  if (source)
    return {
      reads: ["sourceIp"],
      match: ({ sourceIp }) => (sourceIp === undefined ? undefined : test(sourceIp)),
    };
  const unknown = noResolve ? false : undefined;
  return {
    reads: ["ip"],
    match: ({ ip }) => (ip === undefined ? unknown : ip !== null && test(ip)),
  };
}

export const OF_SOURCE: RuleOptions = { noResolve: true, source: true };
