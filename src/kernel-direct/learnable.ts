/** Addresses that are never learnt, whatever the rules say (kernel-direct.md §2.5). */
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { isLanIp, type Cidr, cidrOf } from "#net/address/cidr.ts";

const BENCHMARKS = cidrOf("198.18.0.0/15");

/** `fakeRanges`: pools of fake addresses. True for addresses that are globally reachable. */
export function openLearnable(fakeRanges: readonly Cidr[]): (ip: Ip) => boolean {
  const never = new CidrTable([BENCHMARKS, ...fakeRanges]);
  return (ip) => !isLanIp(ip) && !never.holds(bytesOfIp(ip));
}
