/** From a destination to the addresses worth dialling, best first. */
import { DialError } from "#core/errors.ts";
import type { Answer, Resolver } from "#core/resolver.ts";
import { destinationText } from "#core/session.ts";
import type { Destination, Ip } from "#core/session.ts";
import { familyOf } from "./ip.ts";
import { itemAt } from "#lib/at.ts";

/** `ip-version` of the configuration. */
export type IpVersion = "dual" | "ipv4" | "ipv6" | "ipv4-prefer" | "ipv6-prefer";

export interface Families {
  readonly ipVersion: IpVersion;
  /** False: IPv6 is off altogether, whatever `ipVersion` says. */
  readonly ipv6: boolean;
}

export function allows({ ipVersion, ipv6 }: Families, family: 4 | 6): boolean {
  return family === 4 ? ipVersion !== "ipv6" : ipv6 && ipVersion !== "ipv4";
}

/** How `addressesOf` chooses the first. */
export function choiceOf(families: Families): { readonly family: 4 | 6 | null; readonly prefersV6: boolean } {
  const family = !allows(families, 6) ? 4 : !allows(families, 4) ? 6 : null;
  return { family, prefersV6: families.ipVersion === "ipv6-prefer" };
}

/**
 * A known address is used as it is, unless its family is not allowed and a name could give another. Throws
 * `DialError`: `resolve` where the name has no address of an allowed family, `unreachable` for a forbidden literal.
 */
export async function addressesOf(
  destination: Destination,
  resolver: Resolver,
  families: Families,
  signal: AbortSignal,
): Promise<readonly Ip[]> {
  const { host, ip } = destination;
  if (ip !== null && allows(families, familyOf(ip))) return [ip];
  if (host === null || (!allows(families, 4) && !allows(families, 6)))
    throw new DialError("unreachable", `${destinationText(destination)}: ${offReason(families)}`);
  const { family } = choiceOf(families);
  const answers = await resolver.lookup(host, family === null ? { signal } : { family, signal });
  const usable = answers.filter((answer) => allows(families, familyOf(answer.ip)));
  if (usable.length === 0)
    throw new DialError("resolve", `${host}: no address of an allowed family, ${offReason(families)}`);
  return order(usable, families.ipVersion);
}

function offReason({ ipVersion, ipv6 }: Families): string {
  return ipv6 ? `ip-version is ${ipVersion}` : `ipv6 is off and ip-version is ${ipVersion}`;
}

/** `dual` alternates the families, beginning with that of the first answer; the others put one family first. */
function order(answers: readonly Answer[], ipVersion: IpVersion): readonly Ip[] {
  const ips = answers.map((answer) => answer.ip);
  const lead = ipVersion === "ipv4-prefer" ? 4 : ipVersion === "ipv6-prefer" ? 6 : familyOf(itemAt(ips, 0));
  const front = ips.filter((ip) => familyOf(ip) === lead);
  const back = ips.filter((ip) => familyOf(ip) !== lead);
  if (ipVersion !== "dual") return [...front, ...back];
  const longest = Math.max(front.length, back.length);
  return Array.from({ length: longest }, (_, at) => [front[at], back[at]])
    .flat()
    .filter((ip) => ip !== undefined);
}
