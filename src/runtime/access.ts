import type { Config } from "#config/config.ts";
import type { Access } from "#core/inbound.ts";
import type { Ip } from "#core/session.ts";
import { cidrHolds, cidrText, type Cidr } from "#net/address/cidr.ts";
import { bytesOfIp } from "#net/address/ip.ts";

/** The global access rules of the listeners (`authentication`, `skip-auth-prefixes`, `lan-*-ips`). */
export function openAccess({ accounts, skipAuthPrefixes, lanAllowedIps, lanDisallowedIps }: Config): Access {
  return {
    accounts,
    admitsAll:
      lanDisallowedIps.length === 0 &&
      (lanAllowedIps.length === 0 || [4, 16].every((bytes) => hasAll(lanAllowedIps, bytes))),
    skipsAuthentication: (source) => holds(skipAuthPrefixes, source),
    admits: (source) =>
      !holds(lanDisallowedIps, source) && (lanAllowedIps.length === 0 || holds(lanAllowedIps, source)),
  };
}

/** Two configurations with the same text treat every source alike. */
export function accessKey({ accounts, skipAuthPrefixes, lanAllowedIps, lanDisallowedIps }: Config): string {
  const lists = [skipAuthPrefixes, lanAllowedIps, lanDisallowedIps].map((list) => list.map(cidrText));
  return JSON.stringify([accounts, lists]);
}

/** Of one family. */
function hasAll(list: readonly Cidr[], addressBytes: number): boolean {
  return list.some(({ bytes, bits }) => bytes.length === addressBytes && bits === 0);
}

function holds(list: readonly Cidr[], source: Ip): boolean {
  if (list.length === 0) return false;
  const bytes = bytesOfIp(source);
  return list.some((cidr) => cidrHolds(cidr, bytes));
}
