/** The options of rules that test one address, of the destination or of the source. */
import type { AddressSide } from "#core/condition.ts";
import type { RuleOptions } from "#core/rule.ts";

/** With `no-resolve` an address is tested where it is known already; the source is always known. */
export function sideOf({ noResolve, source }: RuleOptions): AddressSide {
  return source ? "source" : noResolve ? "known-ip" : "ip";
}

export const OF_SOURCE: RuleOptions = { noResolve: true, source: true };
