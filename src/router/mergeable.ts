/** What lets consecutive rules be compiled into one table: conditions that say how they look in it. */
import type { Matcher } from "#core/rule.ts";
import type { Cidr } from "#net/address/cidr.ts";

/** Which address a network is compared with: the destination, the destination if known already, the source. */
export type CidrSide = "ip" | "known-ip" | "source";

export type MergeKey =
  | { readonly kind: "domain"; readonly name: string; readonly covers: number }
  | { readonly kind: CidrSide; readonly cidr: Cidr };

export interface MergeableMatcher extends Matcher {
  readonly merge: MergeKey;
}

export function mergeKeyOf(matcher: Matcher): MergeKey | null {
  return isMergeable(matcher) ? matcher.merge : null;
}

function isMergeable(matcher: Matcher): matcher is MergeableMatcher {
  return "merge" in matcher;
}
